package load

import (
	"context"
	_ "embed" // the script of a job
	"fmt"
	"strings"
	"time"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// jobScript is what a job runs.
//
//go:embed job.sh
var jobScript string

// The manners of jobs.
const (
	Trivial = "true"  // ends at once
	Sleeps  = "sleep" // takes a while
	Prints  = "print" // writes PrintedLines
	Flaky   = "flaky" // fails once
	Fails   = "fail"  // fails as often as it is tried
	Lasts   = "long"  // takes so long that others would have it leave
	Meets   = "meet"  // waits for its other ranks, and works with all of them
)

// PrintedLines is how many lines a job writes that prints.
const PrintedLines = 2000

// gettingGPUs is how long somebody waits for a job's GPUs before they ask for what needs them.
const gettingGPUs = 20 * time.Second

// retriesOfJobs let each job outlive more losses than a run brings.
var retriesOfJobs = map[string]*contract.JobRetries{Flaky: {Failed: 3, Lost: 20}, Fails: {Failed: 1, Lost: 20},
	Meets: {Failed: 5, Lost: 20}}

// submitter submits jobs, one after another, and leaves them to themselves.
type submitter struct {
	*caller
	Visits
	tide  tide
	name  string
	made  int
	given string // the last job that was not cancelled
}

func (s *submitter) runSubmitter(ctx context.Context) {
	for s.tide.awaitFlood(ctx) {
		s.made++
		s.submitOnce(ctx, fmt.Sprintf("%s-%d", s.name, s.made))
		waitFor(ctx, time.Duration(s.chance.Int64N(int64(4*time.Second))))
	}
}

// submitOnce submits a job of some manner: now and then an array, one that waits for another, one that is cancelled or
// requeued soon, a gang, one that may be told to leave, or one for which others do.
func (s *submitter) submitOnce(ctx context.Context, name string) {
	switch s.chance.IntN(24) {
	case 0, 1:
		s.submit(ctx, name, Sleeps, nil)
	case 2:
		s.submit(ctx, name, Sleeps, func(in *contract.JobCreate, _ *Entry) { in.Pool = s.Shared })
	case 3, 4:
		s.submit(ctx, name, Prints, nil)
	case 5:
		s.submit(ctx, name, Flaky, nil)
	case 6:
		s.submit(ctx, name, Fails, nil)
	case 7:
		s.submit(ctx, name, Trivial, func(in *contract.JobCreate, _ *Entry) { in.Array = &contract.JobArray{Last: 2} })
	case 8, 9:
		s.submit(ctx, name, Trivial, s.afterLast)
	case 10:
		s.steerSoon(ctx, name, CancelJob, s.submit(ctx, name, Sleeps, nil))
	case 11, 12, 13:
		s.submit(ctx, name, Meets, asGang)
	case 14:
		s.steerSoon(ctx, name, []Op{CancelJob, RequeueJob}[s.chance.IntN(2)], s.submit(ctx, name, Meets, asGang))
	case 15:
		s.steerSoon(ctx, name, RequeueJob, s.submit(ctx, name, Lasts, nil))
	case 16, 17:
		s.submit(ctx, name, Lasts, mayLeave)
	case 18, 19, 20, 21:
		s.submitUrgent(ctx, name)
	default:
		s.submit(ctx, name, Trivial, nil)
	}
}

// afterLast has a job wait until another one is over.
func (s *submitter) afterLast(in *contract.JobCreate, e *Entry) {
	if e.After = s.given; e.After != "" {
		in.Dependencies = []contract.JobDependency{{JobID: e.After, Condition: "afterany"}}
	}
}

// submit submits a job, or an array, and returns the ids.
func (s *submitter) submit(ctx context.Context, name, manner string, more func(*contract.JobCreate, *Entry)) []string {
	in := contract.JobCreate{Pool: s.Pool, GPUs: 1, Name: name, MaxRuntimeSeconds: 60, GraceSeconds: 5,
		Command: []string{"bash", "-s", "--", manner, s.Runs, s.Log, s.org}, Input: []byte(jobScript),
		Retries: retriesOfJobs[manner]}
	if in.Retries == nil {
		in.Retries = &contract.JobRetries{Lost: 20}
	}
	e := Entry{Op: Submit, Name: name, Manner: manner}
	if more != nil {
		more(&in, &e)
	}
	made, ok := askUntilAnswered(ctx, s.caller, request[contract.JobsSubmitted]{Submit, name,
		func(ctx context.Context, c *client.Client) (contract.JobsSubmitted, error) {
			return c.SubmitJob(ctx, in, client.Options{})
		}, func(all contract.JobsSubmitted) string { return strings.Join(idsOf(all), " ") }})
	if !ok {
		return nil
	}
	for _, id := range idsOf(made) {
		e.ID, s.given = id, id
		s.recordEffect(e)
	}
	return idsOf(made)
}

func idsOf(all contract.JobsSubmitted) (ids []string) {
	for _, j := range all.Jobs {
		ids = append(ids, j.ID)
	}
	return ids
}

// asGang has a job run on two nodes.
func asGang(in *contract.JobCreate, _ *Entry) { in.GPUs, in.Nodes = 2, 2 }

// mayLeave has a job take a whole node, and leave it for others.
func mayLeave(in *contract.JobCreate, _ *Entry) {
	yes := true
	in.GPUs, in.Nodes, in.Priority, in.Preemptible = 2, 1, "low", &yes
}

// asUrgent has a job take a whole node before all others.
func asUrgent(in *contract.JobCreate, _ *Entry) { in.GPUs, in.Nodes, in.Priority = 2, 1, "high" }

// submitUrgent submits a job that may leave, and once that has GPUs another one that goes before it.
func (s *submitter) submitUrgent(ctx context.Context, name string) {
	if ids := s.submit(ctx, name, Lasts, mayLeave); len(ids) > 0 {
		s.awaitGPUs(ctx, ids[0])
	}
	s.submit(ctx, name+"-urgent", Sleeps, asUrgent)
}

// steerSoon cancels the first of the jobs, before it begins or while it runs, or requeues it while it has GPUs.
func (s *submitter) steerSoon(ctx context.Context, name string, op Op, ids []string) {
	if len(ids) == 0 {
		return
	}
	if op == RequeueJob {
		s.awaitGPUs(ctx, ids[0])
	}
	waitFor(ctx, time.Duration(s.chance.Int64N(int64(3*time.Second))))
	_, ok := askUntilAnswered(ctx, s.caller, request[contract.Job]{op, name + "-" + string(op),
		func(ctx context.Context, c *client.Client) (contract.Job, error) {
			if op == RequeueJob {
				return c.RequeueJob(ctx, ids[0])
			}
			return c.CancelJob(ctx, ids[0])
		},
		func(j contract.Job) string { return j.ID }})
	if ok {
		s.recordEffect(Entry{Op: op, ID: ids[0]})
	}
}

// awaitGPUs waits until a job has GPUs, or is over, for some time.
func (s *submitter) awaitGPUs(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(ctx, gettingGPUs)
	defer cancel()
	for ctx.Err() == nil {
		j, err := s.currentServer().Job(ctx, id)
		if err == nil && j.State != contract.JobPending {
			return
		}
		if err != nil {
			s.at++
		}
		waitFor(ctx, 200*time.Millisecond)
	}
}
