package history_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/agent/history"
)

// What the provisioners call their placeholders, as provisioners/slurm/tags.go and provisioners/kubernetes/names.go
// make it.
const (
	slurmName    = "forewarm-0123456789abcdef"
	slurmEnds    = slurmName + "-x1795000000"
	slurmComment = "forewarm:n=nod_1&o=acme&p=slurm&t=tok&y=a100"
	podName      = "forewarm-0123456789abcdef0123456789abcdef01234567"
)

func TestPlaceholdersInARowAreNoJobs(t *testing.T) {
	t.Parallel()
	for row, kept := range map[string]bool{
		"a,,,":                               true,
		"a,forewarm,,":                       true,
		"a,forewarm-eval,my forewarm: test,": true,
		"a,forewarm-deadbeef,,":              true, // too short for a mark
		slurmName + ",,,":                    false,
		"lab/" + podName + ",,,":             false,
		"a," + slurmName + ",,":              false,
		"a," + slurmEnds + ",,":              false,
		"a," + slurmName[:20] + ",,":         false, // as squeue cuts it
		"a,\"" + podName + "-x7k2p\",,":      false, // of a Job
		"a,x," + slurmComment + ",":          false,
		"a,x,,forewarm.dev/role=placeholder": false,
		"a,x,,forewarm.dev/node=nod_1":       true, // work on a warm node
	} {
		records, report, err := collectRecords(t, history.ReadCSV, history.Options{},
			"job_id,name,comment,labels,submit_ts,gpus\n"+row+",1504521041,1\n")
		require.NoError(t, err, row)
		require.Zero(t, report.Broken, row)
		require.Equal(t, kept, len(records) == 1, row)
	}
}

// Whose a job is decides, whatever it is called: only Forewarm's user submits placeholders.
func TestJobsOfOthersAreJobs(t *testing.T) {
	t.Parallel()
	const beat = slurmName + "-h"
	formats := map[string]struct {
		read func(io.Reader, history.Options, func(history.Record) error) (history.Report, error)
		text string
	}{
		"csv": {history.ReadCSV, "job_id,user,submit_ts,gpus,name\n1,%s,1504521041,1,%s\n"},
		"csv comment": {history.ReadCSV, "job_id,user,submit_ts,gpus,name,comment\n1,%s,1504521041,1,%s," + slurmComment +
			"\n"},
		"jsonl":  {history.ReadJSONL, `{"job_id":"1","user":%q,"submit_ts":1504521041,"gpus":1,"name":%q}` + "\n"},
		"sacct":  {history.ReadSacct, "JobID|Submit|AllocTRES|User|JobName\n1|1504521041|gres/gpu=1|%s|%s\n"},
		"squeue": {readSqueue, "JOBID|SUBMIT_TIME|STATE|NODES|TRES_PER_NODE|USER|NAME\n1|1504521041|R|1|gpu:1|%s|%s\n"},
	}
	for name, format := range formats {
		for user, options := range map[string]history.Options{
			"forewarm": {}, "gpu-ops": {OwnUser: "gpu-ops"}, "": {OwnUser: "gpu-ops"},
			"a-very-long-user-nam": {OwnUser: "a-very-long-user-name"},
		} {
			records, _, err := collectRecords(t, format.read, options, fmt.Sprintf(format.text, user, beat))
			require.NoError(t, err, name)
			require.Empty(t, records, "%s of %q", name, user)
		}
		for user, options := range map[string]history.Options{"ada": {}, "forewarm": {OwnUser: "gpu-ops"}, "fore": {}} {
			records, _, err := collectRecords(t, format.read, options, fmt.Sprintf(format.text, user, beat))
			require.NoError(t, err, name)
			require.Len(t, records, 1, "%s of %q", name, user)
			require.True(t, records[0].ResemblesOwn)
		}
	}
}

func TestPlaceholdersInJSONLAreNoJobs(t *testing.T) {
	t.Parallel()
	for fields, kept := range map[string]bool{
		`"name":"train"`:                          true,
		`"name":{"odd":1},"comment":7`:            true,
		`"name":"` + slurmName + `"`:              false,
		`"job_name":"` + slurmEnds + `"`:          false,
		`"comment":"` + slurmComment + `"`:        false,
		`"labels":{"forewarm.dev/role":"record"}`: false,
		`"labels":["forewarm.dev/role=request"]`:  false,
	} {
		records, report, err := collectRecords(t, history.ReadJSONL, history.Options{},
			`{"job_id":"x","submit_ts":1504521041,"gpus":1,`+fields+"}\n")
		require.NoError(t, err, fields)
		require.Zero(t, report.Broken, fields)
		require.Equal(t, kept, len(records) == 1, fields)
		for _, r := range records {
			require.False(t, r.Nameless)
		}
	}
	records, _, err := collectRecords(t, history.ReadJSONL, history.Options{},
		`{"job_id":"x","submit_ts":1504521041,"gpus":1}`)
	require.NoError(t, err)
	require.True(t, records[0].Nameless)
}

func TestPlaceholderPodsAreNoJobs(t *testing.T) {
	t.Parallel()
	plain := fmt.Sprintf(pod, "p1", "", "Running")
	for with, kept := range map[string]bool{
		`"name":"train-x","labels":{"forewarm.dev/node":"nod_1"}`:             true, // work on a warm node
		`"name":"train-x","labels":{"forewarm.dev/role":"placeholder"}`:       false,
		`"name":"train-x","annotations":{"forewarm.dev/token":"tok"}`:         false,
		`"name":"` + podName + `"`:                                            false,
		`"name":"` + podName + `-x7k2p","labels":{"app":"x"}`:                 false,
		`"name":"train-x","labels":null,"annotations":{"team":"forewarmers"}`: true,
	} {
		text := strings.Replace(plain, `"name":"train-x"`, with, 1)
		records, _, err := collectRecords(t, history.ReadKubernetes, history.Options{}, listJSON(text))
		require.NoError(t, err, with)
		require.Equal(t, kept, len(records) == 1, with)
	}
}

func TestLinesAboutOurOwnActsAreTold(t *testing.T) {
	t.Parallel()
	for line, own := range map[string]bool{
		"will sweep 8 GPUs at ten":                               false,
		"slurmd: launched job 17 forewarm the team":              false,
		"compare with forewarm-eval on forewarm.dev/docs":        false,
		"slurmctld: sched: Allocate JobId=7 " + slurmName:        true,
		"slurmctld: job 7 name " + slurmEnds + " gres/gpu:8":     true,
		"job comment=" + slurmComment:                            true,
		"Created pod: " + podName:                                true,
		"labels: forewarm.dev/role: placeholder":                 true,
		"systemd[1]: forewarm-agent.service: started":            true,
		`level=INFO msg="holds 8" program=forewarm-agent`:        true,
		"pod train-x bound to node with forewarm.dev/node=nod_1": false,
		`{"msg":"expects 8 GPUs","program":"forewarm-agent"}`:    true,
	} {
		require.Equal(t, own, history.IsOwnLine(line), line)
	}
}

// readSqueue reads squeue's text as the functions of the other formats do.
func readSqueue(r io.Reader, o history.Options, each func(history.Record) error) (history.Report, error) {
	s := history.NewScanner(r, history.NewSqueue(o))
	for s.Scan() {
		if err := each(s.Record()); err != nil {
			return s.Report(), err
		}
	}
	return s.Report(), s.Err()
}
