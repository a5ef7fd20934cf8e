package jobs

import (
	"fmt"
	"math/bits"
	"strconv"
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/placement"
	"github.com/forewarm/forewarm/core/scheduler"
	"github.com/forewarm/forewarm/ledger"
)

// queue is what the scheduler decides on: a pool and its jobs, as they were at one moment.
type queue struct {
	now      time.Time
	pool     ledger.PoolState
	jobs     map[string]job.Job // that may start now
	order    []string           // of those, by id
	later    []ledger.QueuedJob // that may not yet
	opens    time.Time          // when the first of those may; zero: nobody knows
	hopeless []failure
	late     []job.Job // that have their GPUs, and that no daemon has started in time
}

// isEmpty reports whether nobody waits, for anything.
func (q queue) isEmpty() bool { return len(q.jobs) == 0 && len(q.later) == 0 }

// readQueue reads the pool and its jobs. Of those that wait for other jobs it finds which may start
// by now, and which never can.
func readQueue(r ledger.Reader, poolID string) (queue, error) {
	q := queue{now: r.Now(), jobs: map[string]job.Job{}}
	live, err := r.LiveJobs(poolID)
	if err != nil {
		return q, err
	}
	if len(live) == 0 {
		return q, nil
	}
	if q.pool, err = r.LiveState(poolID); err != nil {
		return q, err
	}
	q.late = q.notStarted(live)
	all := waiting(live)
	others, err := r.JobsByID(dependenciesOf(all))
	if err != nil {
		return q, err
	}
	for _, j := range all {
		q.add(j, others)
	}
	return q, nil
}

// startWithin is how long the daemons of a job's nodes may take to start it on all of them.
const startWithin = 5 * time.Minute

// notStarted are the jobs that have had their GPUs for too long without having been started.
func (q queue) notStarted(live []job.Job) []job.Job {
	scheduled := map[string]job.Job{}
	for _, j := range live {
		if j.State() == job.Scheduled {
			scheduled[j.AllocationID] = j
		}
	}
	var out []job.Job
	for _, a := range q.pool.Allocations {
		j, ok := scheduled[a.ID]
		if ok && a.State() == allocation.Active && q.now.Sub(a.ActiveAt) >= startWithin {
			out = append(out, j)
		}
	}
	return out
}

func dependenciesOf(all []job.Job) []string {
	seen := map[string]bool{}
	var out []string
	for _, j := range all {
		for _, d := range j.Dependencies {
			if !seen[d.JobID] {
				seen[d.JobID] = true
				out = append(out, d.JobID)
			}
		}
	}
	return out
}

func (q *queue) add(j job.Job, others map[string]job.Job) {
	switch verdict, on := j.JudgeAll(others); {
	case verdict == job.Never:
		q.hopeless = append(q.hopeless, failure{j, job.End{Code: job.Dependency,
			Reason: fmt.Sprintf("it was to start %s job %s, which can never come true any more", on.Condition, on.JobID)}})
	case verdict == job.Wait:
		q.later = append(q.later, ledger.QueuedJob{Job: j, Code: ledger.WaitsForJob,
			Detail: fmt.Sprintf("%s job %s", on.Condition, on.JobID)})
	case j.NotBefore.After(q.now):
		if q.opens.IsZero() || j.NotBefore.Before(q.opens) {
			q.opens = j.NotBefore
		}
		q.later = append(q.later, ledger.QueuedJob{Job: j, Code: ledger.WaitsForTime,
			Detail: "until " + ledger.FormatTimeSeen(j.NotBefore, q.now)})
	default:
		q.jobs[j.ID] = j
		q.order = append(q.order, j.ID)
	}
}

// levels are the priorities as the scheduler has them.
var levels = map[string]scheduler.Class{string(job.Low): {Level: 0}, string(job.Normal): {Level: 1},
	string(job.High): {Level: 2}}

// scheduler returns the scheduler of the pool as it is. Slots stand for nodes: also one that is
// empty can be booted.
func (q queue) scheduler() (*scheduler.Scheduler, error) {
	p := scheduler.Default()
	p.Classes, p.MostWaiting = levels, ledger.MostJobs
	from := scheduler.Snapshot{Nodes: q.nodes(), Running: q.running()}
	for _, id := range q.order {
		from.Waiting = append(from.Waiting, asWaiting(q.jobs[id]))
	}
	for _, use := range q.pool.Uses {
		from.Tenants = append(from.Tenants, scheduler.TenantUsage{Tenant: use.OrganizationID, Usage: use.Usage})
	}
	return scheduler.Restore(p, from)
}

func asWaiting(j job.Job) scheduler.Job {
	return scheduler.Job{ID: j.ID, Tenant: j.OrganizationID, User: j.UserID, Class: string(j.Priority),
		Request: placement.Request{Shape: j.Shape}, MaxRuntime: j.MaxRuntime, Submitted: j.SubmittedAt,
		NotBefore: j.NotBefore, Attained: j.GPUTime / time.Duration(max(j.Shape.GPUs(), 1))}
}

func nameOfSlot(slot int) string { return "slot-" + strconv.Itoa(slot) }

func (q queue) nodes() []placement.Node {
	closed := map[int]bool{}
	for _, n := range q.pool.Nodes {
		switch n.State() {
		case node.Requested, node.Provisioning, node.Booting, node.Ready, node.Gone, node.Failed:
		default:
			closed[n.Slot] = true
		}
	}
	all := make([]placement.Node, q.pool.Pool.MaxNodes)
	for slot := range all {
		all[slot] = placement.Node{ID: nameOfSlot(slot), Kind: placement.Kind{GPUs: q.pool.Pool.PerNode},
			Condition: placement.Condition{Drained: closed[slot]}}
	}
	return all
}

// running is what is on the slots by now: which of a node's GPUs it has does not matter here.
func (q queue) running() []scheduler.Running {
	taken := map[int]uint64{}
	var all []scheduler.Running
	for _, a := range q.pool.Allocations {
		if a.Live() && !a.Observed() {
			if r, ok := q.runningOf(a, taken); ok {
				all = append(all, r)
			}
		}
	}
	return all
}

func (q queue) runningOf(a allocation.Allocation, taken map[int]uint64) (scheduler.Running, bool) {
	r := scheduler.Running{Job: scheduler.Job{ID: a.ID, Tenant: a.OrganizationID, User: a.UserID,
		Class: string(job.Normal), Request: placement.Request{Shape: a.Shape}, Submitted: a.RequestedAt,
		MaxRuntime: a.Lease}, Started: a.RequestedAt, Until: a.Window.End}
	if !r.Until.After(q.now) {
		r.Until = q.now.Add(time.Second) // its end is about to be seen
	}
	for i, slot := range a.Slots {
		devices := lowestFree(taken[slot], a.Shape.On(i), q.pool.Pool.PerNode)
		if devices == 0 || slot >= q.pool.Pool.MaxNodes {
			return r, false // the pool was made smaller around it
		}
		taken[slot] |= devices
		r.Spots = append(r.Spots, placement.Spot{Node: nameOfSlot(slot), GPUs: a.Shape.On(i), Devices: devices})
	}
	return r, true
}

// lowestFree are so many of a node's devices that nobody has; 0: there are not enough.
func lowestFree(taken uint64, n, of int) (devices uint64) {
	for i := 0; i < of && bits.OnesCount64(devices) < n; i++ {
		if taken&(1<<i) == 0 {
			devices |= 1 << i
		}
	}
	if bits.OnesCount64(devices) < n {
		return 0
	}
	return devices
}

// sinceOf is when a job entered its state, as far as that is known.
func sinceOf(j job.Job) time.Time {
	switch {
	case j.Over():
		return j.EndedAt
	case j.State() == job.Running || j.State() == job.Preempted:
		return j.StartedAt
	case j.State() == job.Scheduled:
		return j.ScheduledAt
	}
	return j.SubmittedAt
}
