package slurm

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/agent/history"
	"github.com/forewarm/forewarm/provisioners"
)

// fill makes a row of squeue of what differs from a plain running job.
func fill(change map[string]string) []string {
	values := map[string]string{"JobID": "7", "JobArrayID": "7", "State": "RUNNING", "Reason": "None", "UserName": "ada",
		"Account": "vision", "Partition": "gpu", "SubmitTime": "1795461783", "EligibleTime": "1795461783",
		"StartTime": "1795461790", "EndTime": "1795465384", "NodeList": "e[1-2]", "NumNodes": "2", "NumTasks": "2",
		"NumCPUs": "16", "tres-alloc": "cpu=16,node=2,billing=16", "tres-per-job": "N/A", "tres-per-node": "N/A",
		"tres-per-task": "N/A", "OverSubscribe": "OK"}
	for name, value := range change {
		values[name] = value
	}
	row := make([]string, len(workColumns))
	for i, column := range workColumns {
		row[i] = values[column]
	}
	return row
}

func twoNodes() map[string]elasticNode {
	nodes := map[string]elasticNode{}
	for _, name := range []string{"e1", "e2"} {
		nodes[name] = elasticNode{name: name, partitions: []string{"gpu"}, gres: "gpu:a100:4"}
	}
	return nodes
}

func TestGPUsOfWork(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change map[string]string
		nodes  []int
	}{
		"per node":             {map[string]string{"tres-per-node": "gres:gpu:a100:4"}, []int{4, 4}},
		"per node, newer":      {map[string]string{"tres-per-node": "gres/gpu:a100:3"}, []int{3, 3}},
		"per node, one":        {map[string]string{"tres-per-node": "gres:gpu"}, []int{1, 1}},
		"per job":              {map[string]string{"tres-per-job": "gres:gpu:5"}, []int{3, 2}},
		"per task":             {map[string]string{"tres-per-task": "gres:gpu:2"}, []int{2, 2}},
		"tracked":              {map[string]string{"tres-alloc": "cpu=2,gres/gpu=6,gres/gpu:a100=6"}, []int{3, 3}},
		"exclusive":            {map[string]string{"OverSubscribe": "NO"}, []int{4, 4}},
		"another resource":     {map[string]string{"tres-per-node": "gres:nic:2"}, []int{0, 0}},
		"two kinds, both gpus": {map[string]string{"tres-per-node": "gres:gpu:a100:1,gres:gpu:h100:1"}, []int{2, 2}},
	} {
		r, err := parseWorkRow(fill(test.change))
		require.NoError(t, err, name)
		r.placeOn([]Offer{{Type: "a100-4", Partition: "gpu", Gres: "gpu:a100", GPUs: 4}}, twoNodes())
		require.Equal(t, []provisioners.WorkNode{{Name: "e1", GPUs: test.nodes[0]}, {Name: "e2", GPUs: test.nodes[1]}},
			r.work.Nodes, name)
		require.Equal(t, test.nodes[0]+test.nodes[1], r.work.GPUs, name)
		require.Equal(t, "a100-4", r.work.Type, name)
	}
}

func TestTimesOfWork(t *testing.T) {
	t.Parallel()
	parse := func(change map[string]string) provisioners.Work {
		r, err := parseWorkRow(fill(change))
		require.NoError(t, err)
		return r.work
	}
	boots := parse(map[string]string{"State": "CONFIGURING"})
	require.Equal(t, provisioners.WaitBoot, boots.Waiting)
	require.Zero(t, boots.StartedAt)
	waits := parse(map[string]string{"State": "PENDING", "Reason": "Priority", "NodeList": "", "StartTime": "1795469999"})
	require.Equal(t, provisioners.WaitPriority, waits.Waiting)
	require.Zero(t, waits.StartedAt, "an estimate is no start")
	ended := parse(map[string]string{"State": "COMPLETED"})
	require.Equal(t, time.Unix(1795465384, 0).UTC(), ended.EndedAt)
	cancelled := parse(map[string]string{"State": "CANCELLED", "NodeList": "", "StartTime": "1795461999"})
	require.Zero(t, cancelled.StartedAt, "it never ran")
	require.Zero(t, parse(nil).EndedAt, "a time limit is no end")
	task := parse(map[string]string{"JobArrayID": "3_2", "JobID": "8"})
	require.Equal(t, "3_2@1795461783", task.ID)
	require.Equal(t, task.ID, parse(map[string]string{"JobArrayID": "3_2", "JobID": "3"}).ID, "before it was split off")
	rest := parse(map[string]string{"JobArrayID": "3_[4-9%2]", "JobID": "3", "State": "PENDING", "NodeList": ""})
	require.Equal(t, "3_*@1795461783", rest.ID, "none of them has a place")
	require.NotEqual(t, boots.ID, parse(map[string]string{"SubmitTime": "1795461999"}).ID, "it was queued again")
	for _, bad := range []map[string]string{{"SubmitTime": "N/A"}, {"State": "ODD"}, {"NodeList": "e[1-"},
		{"NumNodes": "two"}} {
		_, err := parseWorkRow(fill(bad))
		require.Error(t, err, bad)
	}
}

func TestReasons(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]provisioners.Reason{
		"Resources": provisioners.WaitResources, "ReqNodeNotAvail,_UnavailableNodes:e1": provisioners.WaitResources,
		"Nodes_required_for_job_are_DOWN,_DRAINED": provisioners.WaitResources, "Priority": provisioners.WaitPriority,
		"QOSMaxGRESPerUser": provisioners.WaitLimits, "AssocGrpGRES": provisioners.WaitLimits,
		"JobArrayTaskLimit": provisioners.WaitLimits, "PartitionTimeLimit": provisioners.WaitLimits,
		"Dependency": provisioners.WaitDependencies, "JobHeldUser": provisioners.WaitDependencies,
		"BeginTime": provisioners.WaitDependencies, "None": provisioners.WaitOther, "": provisioners.WaitOther,
	} {
		require.Equal(t, want, reasonOf(text), text)
	}
}

func TestHosts(t *testing.T) {
	t.Parallel()
	for list, want := range map[string]string{
		"": "", "e1": "e1", "e[1-2],login": "e1 e2 login", "gpu[08-10,12]": "gpu08 gpu09 gpu10 gpu12",
		"r[1-2]n[1-2]": "r1n1 r1n2 r2n1 r2n2",
	} {
		hosts, err := expandHosts(list, 2)
		require.NoError(t, err)
		require.Equal(t, want, strings.Join(hosts, " "), list)
	}
	for _, list := range []string{"e[1-", "e[2-1]", "e[a]", "e[1-9999999]", "e[1-300]", "r[1-20]n[1-20]"} {
		_, err := expandHosts(list, 2)
		require.Error(t, err, list)
	}
	many, err := expandHosts("e[1-300]", 300)
	require.NoError(t, err)
	require.Len(t, many, 300)
}

// What sacct knows of a job has the same id and times as what squeue has shown of it.
func TestAccountedWork(t *testing.T) {
	t.Parallel()
	shown, err := parseWorkRow(fill(map[string]string{"State": "COMPLETED", "JobArrayID": "3_2",
		"tres-per-node": "gres:gpu:4"}))
	require.NoError(t, err)
	fields := []string{"8", "3_2", "COMPLETED", "ada", "vision", "gpu", "1795461783", "1795461783", "1795461790",
		"1795465384", "e[1-2]", "2", "cpu=16,gres/gpu=8", "cpu=2"}
	require.Len(t, fields, len(historyFields))
	known, err := parseWorkRow(squeueRow(fields, "COMPLETED"))
	require.NoError(t, err)
	shown.placeOn(nil, twoNodes())
	known.placeOn(nil, twoNodes())
	require.Equal(t, shown.work, known.work)
}

// Only our user's jobs with our names are our own: a name alone is anybody's to choose.
// As long as no job of our user was seen, none is ours.
func TestOwnWork(t *testing.T) {
	t.Parallel()
	for name, own := range map[string]bool{"forewarm-0123456789abcdef-h": true, "forewarm-0123456789abcdef": true,
		"forewarm-0123456789abcdef-x1795461783": true, "forewarm-eval": false, "train": false} {
		require.Equal(t, own, isOwnName(name), name)
	}
	rows := func() queueView {
		var q queueView
		for _, change := range []map[string]string{
			{}, {"JobID": "8", "UserName": "bob"}, {"JobID": "9", "State": "FAILED"}} {
			r, err := parseWorkRow(fill(change))
			require.NoError(t, err)
			q.rows = append(q.rows, r)
		}
		return q
	}
	marked := func(v beatView) string {
		q := rows()
		q.markOwn(v)
		text := ""
		for _, r := range q.rows {
			text += fmt.Sprintf("%s:%t ", r.job, r.own)
		}
		return text
	}
	require.Equal(t, "7:false 8:false 9:false ", marked(beatView{whole: true}))
	require.Equal(t, "7:true 8:false ", marked(beatView{whole: true, user: "ada", jobs: map[string]bool{"7": true},
		own: map[string]bool{"7": true}}), "9 was forgotten between two looks")
	require.Equal(t, "7:false 8:false 9:false ", marked(beatView{whole: true, user: "ada",
		jobs: map[string]bool{"7": true, "9": true}}))
	require.Equal(t, "7:true 8:false ", marked(beatView{user: "ada"}), "what is cut may be ours")
}

// The customer's agent must not learn from heartbeats that somebody wants what they keep.
func TestTheAgentKnowsOurHeartbeats(t *testing.T) {
	t.Parallel()
	c := Config{Name: "lab"}
	k := keeping{tags: tags{token: "token", owner: "acme", node: "nod_1", kind: "a100"}, host: "e1",
		created: time.Unix(9, 0)}
	name := "forewarm-" + c.tokenMark("token") + "-" + string(aheadBeat)
	for _, row := range []string{name + ",", "x," + c.beatComment(k)} {
		report, err := history.ReadCSV(strings.NewReader("job_id,submit_ts,gpus,name,comment\n1,1504521041,8,"+row+"\n"),
			history.Options{}, func(history.Record) error { return nil })
		require.NoError(t, err)
		require.EqualValues(t, 1, report.Skipped, row)
	}
	require.True(t, history.IsOwnLine("slurmctld: sched: Allocate JobId=7 Comment="+c.beatComment(k)))
}
