package server_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
)

// jobFleet is a fleet of whose first node the daemon has joined.
type jobFleet struct {
	*fleet
	pool       string
	seq        int64
	containers string // what its daemons run containers by
}

func newJobFleet(t *testing.T) *jobFleet {
	f := &jobFleet{fleet: newFleet(t)}
	f.pool = f.nodes[0].PoolID
	f.join(0, "boot", "daemon0")
	f.join(1, "boot", "daemon1")
	return f
}

func (f *jobFleet) submit(key, body string) []contract.Job {
	f.t.Helper()
	f.seq++
	return ask[contract.JobsSubmitted](f.world, key, http.MethodPost, "/v1/jobs", body, "Idempotency-Key",
		fmt.Sprintf("job-%d", f.seq)).Jobs
}

// schedule does what a worker does after a change in the pool.
func (f *jobFleet) schedule() {
	f.t.Helper()
	require.NoError(f.t, f.ledger.ScheduleJobs(f.t.Context(), f.pool))
}

// report sends a heartbeat of a node that was asked for, with what is known of jobs.
func (f *jobFleet) report(node int, jobs ...contract.JobReport) contract.HeartbeatAnswer {
	f.t.Helper()
	f.seq++
	return f.sendBeat(fmt.Sprintf("daemon%d", node), node, f.beat(node, 1, f.seq, "healthy", func(b *contract.Heartbeat) {
		b.Asked, b.Jobs, b.Look.Isolation, b.Look.Containers = true, jobs, "user", f.containers
	}))
}

func (f *jobFleet) job(id string) contract.Job {
	f.t.Helper()
	return ask[contract.Job](f.world, "root", http.MethodGet, "/v1/jobs/"+id, "")
}

// order is the one order that some daemon gets, and its node.
func (f *jobFleet) order() (contract.JobOrder, int) {
	f.t.Helper()
	for node := range 2 {
		if got := f.report(node).Jobs; len(got) > 0 {
			require.Len(f.t, got, 1)
			return got[0], node
		}
	}
	require.Fail(f.t, "nobody is told to start a job")
	return contract.JobOrder{}, 0
}

func (f *jobFleet) output(id, query string) (text string) {
	f.t.Helper()
	out := f.send("root", http.MethodGet, "/v1/jobs/"+id+"/output?"+query, "")
	require.Equal(f.t, 200, out.Code, out.Body.String())
	require.Equal(f.t, "application/x-ndjson", out.Header().Get("Content-Type"))
	for line := range strings.Lines(out.Body.String()) {
		var piece contract.JobOutput
		require.NoError(f.t, json.Unmarshal([]byte(line), &piece))
		text += piece.Stream[3:4] + ":" + string(piece.Data) + " "
	}
	return text
}

// A job's whole way over the wire: submitted once, ordered with what its daemon needs, its output
// stored and read, its end reported, and forgotten by the daemon.
func TestAJobsWay(t *testing.T) {
	t.Parallel()
	f := newJobFleet(t)
	body := `{"pool":"` + f.pool + `","name":"train","command":["sh","-c","echo a\n\techo b"],` +
		`"environment":{"A":"1\n2"},"input":"aGk=","max_runtime_seconds":600,` +
		`"checkpoint":{"signal":"USR1","leader_only":true},"array":{"first":7,"last":7}}`
	dry := ask[contract.JobsSubmitted](f.world, "root", http.MethodPost, "/v1/jobs?dry_run=true", body)
	require.Len(t, dry.Jobs, 1)
	require.Empty(t, ask[contract.List[contract.Job]](f.world, "root", http.MethodGet, "/v1/jobs", "").Items)
	made := f.submit("root", body)
	f.seq--
	require.Equal(t, made, f.submit("root", body), "sent again, with the same key")
	f.schedule()
	order, node := f.order()
	require.Equal(t, made[0].ID, order.JobID)
	require.Equal(t, []string{"sh", "-c", "echo a\n\techo b"}, order.Command)
	require.Equal(t, "hi", string(order.Input))
	require.Len(t, order.GPUUUIDs, 1)
	require.Equal(t, map[string]string{"A": "1\n2", "FOREWARM_ARRAY_ID": made[0].ArrayID, "FOREWARM_ARRAY_INDEX": "7",
		"FOREWARM_ARRAY_COUNT": "1", "FOREWARM_ARRAY_FIRST": "7", "FOREWARM_ARRAY_LAST": "7",
		"FOREWARM_JOB_NAME": "train"}, order.Environment)
	require.Equal(t, &contract.JobCheckpoint{Signal: "USR1", BeforeSeconds: 60, LeaderOnly: true}, order.Checkpoint)
	running := contract.JobReport{JobKey: order.JobKey, State: contract.JobRankRunning}
	require.Empty(t, f.report(node, running).Jobs, "it is known")
	require.Equal(t, "running", f.job(order.JobID).State)

	part := `{"attempt":1,"rank":0,"offset":0,"pieces":[{"stream":"stdout","at":"2026-03-02T09:00:00Z","data":"YWJj"},` +
		`{"stream":"stderr","at":"2026-03-02T09:00:01Z","data":"ZGU="}]}`
	for range 2 {
		stored := ask[contract.JobOutputStored](f.world, fmt.Sprintf("daemon%d", node), http.MethodPut,
			f.path(node, "jobs/"+order.JobID+"/output"), part)
		require.EqualValues(t, 5, stored.NextOffset)
	}
	require.Equal(t, contract.CodeNotFound, f.refuse(fmt.Sprintf("daemon%d", 1-node), http.MethodPut,
		f.path(1-node, "jobs/"+order.JobID+"/output"), part).Code, "another node's")
	require.Equal(t, "o:abc e:de ", f.output(order.JobID, ""))
	require.Equal(t, "o:bc e:de ", f.output(order.JobID, "offset=1"))
	require.Equal(t, "e:e ", f.output(order.JobID, "tail=1"))
	for _, query := range []string{"rank=1", "attempt=2"} {
		require.Equal(t, contract.CodeInvalidParameter, f.refuse("root", http.MethodGet,
			"/v1/jobs/"+order.JobID+"/output?"+query, "").Code)
	}

	ended := contract.JobReport{JobKey: order.JobKey, State: contract.JobRankEnded, ExitCode: 3, RanSeconds: 1}
	for range 3 {
		answer := f.report(node, ended)
		require.Equal(t, []contract.JobKey{order.JobKey}, answer.ForgetJobs)
		require.Equal(t, []string{order.AllocationID}, answer.Ended, "its hold ends with the same answer")
	}
	over := f.job(order.JobID)
	require.Equal(t, "failed", over.State)
	require.Equal(t, 3, *over.ExitCode)
	require.Equal(t, "exit", over.Reason)
	require.Equal(t, 1, over.Attempt)
	require.Equal(t, "o:abc e:de ", f.output(order.JobID, "follow=true"), "and the stream ends")
	require.Empty(t, ask[contract.List[contract.Job]](f.world, "root", http.MethodGet, "/v1/jobs", "").Items)
	require.Len(t, ask[contract.List[contract.Job]](f.world, "root", http.MethodGet, "/v1/jobs?all=true", "").Items, 1)
	require.Contains(t, ask[contract.Explanation](f.world, "root", http.MethodGet, "/v1/jobs/"+order.JobID+"/explain",
		"").Summary, "exit code 3")
}

// Output is read from a time on; what follows is shown whatever a clock says that was set back.
func TestOutputSinceATime(t *testing.T) {
	t.Parallel()
	f := newJobFleet(t)
	f.submit("root", `{"pool":"`+f.pool+`","command":["true"]}`)
	f.schedule()
	order, node := f.order()
	var pieces []string
	for _, second := range []int{0, 5, 3, 9} {
		pieces = append(pieces, fmt.Sprintf(`{"stream":"stdout","at":"2026-03-02T09:00:%02dZ","data":"%s"}`, second,
			base64.StdEncoding.EncodeToString([]byte(fmt.Sprint(second)))))
	}
	ask[contract.JobOutputStored](f.world, fmt.Sprintf("daemon%d", node), http.MethodPut,
		f.path(node, "jobs/"+order.JobID+"/output"), `{"attempt":1,"rank":0,"offset":0,"pieces":[`+
			strings.Join(pieces, ",")+`]}`)
	for query, want := range map[string]string{"since=2026-03-02T09:00:00Z": "o:0 o:5 o:3 o:9 ",
		"since=2026-03-02T09:00:04Z": "o:5 o:3 o:9 ", "since=2026-03-02T10:00:05%2B01:00&offset=2": "o:9 ",
		"since=2026-03-02T09:00:10Z": ""} {
		require.Equal(t, want, f.output(order.JobID, query), query)
	}
	f.report(node, contract.JobReport{JobKey: order.JobKey, State: contract.JobRankEnded})
	require.Equal(t, "o:5 o:3 o:9 ", f.output(order.JobID, "follow=true&since=2026-03-02T09:00:01Z"))
	for _, query := range []string{"since=2026-03-02T09:00:04Z&tail=1", "since=10m"} {
		require.Equal(t, 400, f.refuse("root", http.MethodGet, "/v1/jobs/"+order.JobID+"/output?"+query, "").Status, query)
	}
}

// What a daemon sends at most in one part is taken: pieces of 64 KiB, 512 KiB of them.
func TestTheLargestPartOfOutput(t *testing.T) {
	t.Parallel()
	f := newJobFleet(t)
	f.submit("root", `{"pool":"`+f.pool+`","command":["true"]}`)
	f.schedule()
	order, node := f.order()
	part := contract.JobOutputPart{Attempt: 1}
	for range 8 {
		part.Pieces = append(part.Pieces, contract.JobOutputData{Stream: "stdout", Data: make([]byte, 64<<10)})
	}
	body, err := json.Marshal(part)
	require.NoError(t, err)
	stored := ask[contract.JobOutputStored](f.world, fmt.Sprintf("daemon%d", node), http.MethodPut,
		f.path(node, "jobs/"+order.JobID+"/output"), string(body))
	require.EqualValues(t, 512<<10, stored.NextOffset)
}

// A job that says how many nodes it needs, and no more, has a GPU on each.
func TestNodesAloneHaveAGPUEach(t *testing.T) {
	t.Parallel()
	f := newJobFleet(t)
	made := f.submit("root", `{"pool":"`+f.pool+`","command":["true"],"nodes":2}`)
	require.Equal(t, []int{2, 2, 1}, []int{made[0].GPUs, made[0].Nodes, made[0].GPUsPerNode})
}

// Of long output the server keeps the beginning and the end: a reader is told where the rest was, and how much.
func TestOutputThatIsNotKeptIsCounted(t *testing.T) {
	t.Parallel()
	f := newJobFleet(t)
	f.submit("root", `{"pool":"`+f.pool+`","command":["true"]}`)
	f.schedule()
	order, node := f.order()
	const parts = 20
	for i := range parts {
		part := contract.JobOutputPart{Attempt: 1, Offset: int64(i) * (512 << 10)}
		for range 8 {
			part.Pieces = append(part.Pieces, contract.JobOutputData{Stream: "stdout", Data: make([]byte, 64<<10)})
		}
		body, err := json.Marshal(part)
		require.NoError(t, err)
		f.send(fmt.Sprintf("daemon%d", node), http.MethodPut, f.path(node, "jobs/"+order.JobID+"/output"), string(body))
	}
	var kept, leftOut int64
	out := f.send("root", http.MethodGet, "/v1/jobs/"+order.JobID+"/output", "")
	for line := range strings.Lines(out.Body.String()) {
		var piece contract.JobOutput
		require.NoError(t, json.Unmarshal([]byte(line), &piece))
		require.Equal(t, kept+leftOut+piece.LeftOut, piece.Offset)
		kept, leftOut = kept+int64(len(piece.Data)), leftOut+piece.LeftOut
	}
	require.Positive(t, leftOut)
	require.EqualValues(t, parts*512<<10, kept+leftOut)
}

// What a daemon quotes of a job must not keep it from reporting all else.
func TestAJobsWordsDoNotSilenceItsNode(t *testing.T) {
	t.Parallel()
	f := newJobFleet(t)
	f.submit("root", `{"pool":"`+f.pool+`","command":["true"],"retries":{"failed":0,"lost":0}}`)
	f.schedule()
	order, node := f.order()
	ended := contract.JobReport{JobKey: order.JobKey, State: contract.JobRankEnded, Code: contract.JobNotStarted,
		Reason: "starting /x\n\u001b[2J\u0000y: no such file"}
	require.Len(t, f.report(node, ended).ForgetJobs, 1)
	over := f.job(order.JobID)
	require.Equal(t, "failed", over.State)
	require.NotContains(t, over.Detail, "\u001b")
	require.Contains(t, over.Detail, "no such file")
}

// Traps g and h of the seeds: what makes no sense, or is not the caller's to say, changes nothing.
func TestJobsThatAreRefused(t *testing.T) {
	t.Parallel()
	f := newJobFleet(t)
	cases := map[string]bad{}
	for name, body := range map[string]string{
		"no command": `{"gpus":1}`, "an empty command": `{"command":[]}`, "an empty program": `{"command":[""]}`,
		"negative":         `{"command":["true"],"gpus":-1}`,
		"huge":             `{"command":["true"],"gpus":1e30}`,
		"too long":         `{"command":["true"],"max_runtime_seconds":99999999}`,
		"another's word":   `{"command":["true"],"organization_id":"org_1"}`,
		"its own attempts": `{"command":["true"],"attempt":3}`, "its own state": `{"command":["true"],"state":"completed"}`,
		"a mount, no image":   `{"command":["true"],"mounts":[{"source":"/data"}]}`,
		"a mount, no path":    `{"command":["true"],"image":"a","mounts":[{"source":"data"}]}`,
		"an escape":           `{"command":["echo","\u001b[2J"]}`,
		"a program of lines":  `{"command":["/x\ny"]}`,
		"a large large array": `{"command":["true","` + strings.Repeat("x", 100_000) + `"],"array":{"first":0,"last":999}}`,
		"no variable":         `{"command":["true"],"environment":{"A=B":"1"}}`,
		"nobody's dependency": `{"command":["true"],"dependencies":[{"job_id":"job_404"}]}`,
		"backwards":           `{"command":["true"],"array":{"first":2,"last":1}}`,
		"a large array":       `{"command":["true"],"array":{"first":0,"last":100000}}`,
	} {
		cases[name] = bad{path: "/v1/jobs", body: strings.Replace(body, "{", `{"pool":"`+f.pool+`",`, 1)}
	}
	for name, c := range cases {
		p := f.refuse("root", http.MethodPost, c.path, c.body, "Idempotency-Key", "bad-"+strings.ReplaceAll(name, " ", "-"))
		require.Contains(t, []int{400, 422}, p.Status, name)
	}
	f.createKey("viewer", "viewer")
	require.Equal(t, contract.CodePermissionDenied, f.refuse("viewer", http.MethodPost, "/v1/jobs", `{"command":["true"]}`,
		"Idempotency-Key", "viewer").Code)
	require.Empty(t, ask[contract.List[contract.Job]](f.world, "root", http.MethodGet, "/v1/jobs?all=true", "").Items)
}

// The queue shows who waits, in order, and steering changes it.
func TestTheQueue(t *testing.T) {
	t.Parallel()
	f := newJobFleet(t)
	all := f.submit("root", `{"pool":"`+f.pool+`","command":["true"],"gpus":4,"array":{"first":0,"last":3}}`)
	f.schedule()
	queue := func() (ids []string) {
		waits := ask[contract.List[contract.Job]](f.world, "root", http.MethodGet, "/v1/queue?pool="+f.pool, "").Items
		for _, j := range waits {
			ids = append(ids, j.ID)
		}
		return ids
	}
	waits := queue()
	require.Len(t, waits, 2, "two of four have their GPUs")
	high := f.submit("root", `{"pool":"`+f.pool+`","command":["true"],"gpus":4,"priority":"high"}`)[0].ID
	require.Equal(t, append([]string{high}, waits...), queue())
	placed := ask[contract.Job](f.world, "root", http.MethodGet, "/v1/jobs/"+waits[0]+"?position=true", "")
	require.Equal(t, 2, placed.Position)
	post := func(id, what string) contract.Job {
		return ask[contract.Job](f.world, "root", http.MethodPost, "/v1/jobs/"+id+"/"+what, "")
	}
	require.Equal(t, "held", post(high, "hold").State)
	require.Equal(t, waits, queue())
	require.Equal(t, "pending", post(high, "release").State)
	require.Equal(t, "cancelled", post(waits[0], "cancel").State)
	require.Equal(t, contract.CodeStateConflict, f.refuse("root", http.MethodPost, "/v1/jobs/"+waits[0]+"/hold", "").Code)
	require.Equal(t, []string{high, waits[1]}, queue())
	order, node := f.order()
	f.report(node, contract.JobReport{JobKey: order.JobKey, State: contract.JobRankRunning})
	ending := post(order.JobID, "requeue")
	require.Equal(t, "running", ending.State)
	require.Equal(t, "requeued", ending.Ending.Then)
	require.Contains(t, ask[contract.Explanation](f.world, "root", http.MethodGet, "/v1/jobs/"+order.JobID+"/explain",
		"").Summary, "It is ending: it was told TERM")
	stop := contract.JobStop{JobKey: order.JobKey, GraceSeconds: 30}
	running := contract.JobReport{JobKey: order.JobKey, State: contract.JobRankRunning}
	require.Equal(t, []contract.JobStop{stop}, f.report(node, running).StopJobs)
	running.State, running.Code, running.ExitCode = contract.JobRankEnded, contract.JobStopped, 143
	require.Empty(t, f.report(node, running).StopJobs)
	require.Equal(t, "pending", f.job(order.JobID).State)
	require.Nil(t, f.job(order.JobID).Ending)
	require.Contains(t, queue(), order.JobID)
	require.Len(t, all, 4)
}

// A job that the kernel ended for its memory is not tried again, whatever it asks for: it would need as much.
func TestAJobThatNeedsTooMuchMemoryIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	f := newJobFleet(t)
	f.submit("root", `{"pool":"`+f.pool+`","command":["true"],"retries":{"failed":5,"lost":5}}`)
	f.schedule()
	order, node := f.order()
	ended := contract.JobReport{JobKey: order.JobKey, State: contract.JobRankEnded, Code: contract.JobOutOfMemory,
		ExitCode: 137, Signal: "KILL", Reason: "it needed more than 96 MiB", PeakMemoryBytes: 96 << 20}
	require.Len(t, f.report(node, ended).ForgetJobs, 1)
	over := f.job(order.JobID)
	require.Equal(t, []any{"failed", "oom", "it needed more than 96 MiB", 137, int64(96 << 20)},
		[]any{over.State, over.Reason, over.Detail, *over.ExitCode, over.PeakMemoryBytes})
}

// A job with an image is refused where daemons report, and none of them runs containers; where one does, or none
// reports yet, it waits for a node. Its daemon is told the image.
func TestAJobWithAnImage(t *testing.T) {
	t.Parallel()
	f := newJobFleet(t)
	body := `{"pool":"` + f.pool + `","command":["true"],"image":"python:3.12",` +
		`"mounts":[{"source":"/data","read_only":true}]}`
	mounts := []contract.JobMount{{Source: "/data", ReadOnly: true}}
	early := f.submit("root", body)
	require.Equal(t, []any{"python:3.12", mounts}, []any{early[0].Image, early[0].Mounts})
	f.report(0)
	p := f.refuse("root", http.MethodPost, "/v1/jobs", body, "Idempotency-Key", "image")
	require.Contains(t, p.Detail, "image cannot be used: no node there runs containers")
	f.containers = "podman"
	f.report(1)
	f.submit("root", body)
	require.Equal(t, "podman", f.node(1).Daemon.Containers)
	f.schedule()
	for node := range 2 {
		for _, order := range f.report(node).Jobs {
			require.Equal(t, []any{"python:3.12", mounts}, []any{order.Image, order.Mounts})
		}
	}
}
