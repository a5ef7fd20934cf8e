package job

import (
	"fmt"
	"time"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/money"
)

// Priority is a class of jobs: higher ones are served first.
type Priority string

// The priorities.
const (
	Low    Priority = "low"
	Normal Priority = "normal"
	High   Priority = "high"
)

// Command is what a job runs, once on each of its nodes.
type Command struct {
	Arguments   []string // the program first
	Directory   string   // empty: the folder of the allocation
	Environment map[string]string
	Input       []byte // of each; empty: nothing
	Slurm       bool   // it finds the variables of Slurm
	Image       string // of the container it runs in; empty: it runs in none
	Mounts      []Mount
}

// Mount is a folder of the node that a job has in its container.
type Mount struct {
	Source   string
	Target   string // empty: the same
	ReadOnly bool
}

// Checkpoint has a job told by a signal that its end is near.
type Checkpoint struct {
	Signal     string // such as USR1; empty: it is not told
	Before     time.Duration
	LeaderOnly bool // its first process gets the signal; else its whole process group
}

// Retries is how often a job is tried again, by whose doing it was.
type Retries struct {
	Failed int // its own
	Lost   int // its node's, or ours
}

// Condition is how far another job must have come.
type Condition string

// The conditions, with the names of Slurm's.
const (
	After      Condition = "after"      // it has started
	AfterOK    Condition = "afterok"    // it has completed
	AfterNotOK Condition = "afternotok" // it is over, and has not completed
	AfterAny   Condition = "afterany"   // it is over
	AfterCorr  Condition = "aftercorr"  // its job of the same index has completed: asked for, and never stored
)

// Depends is a condition on another job, or on all jobs of an array.
type Depends struct {
	JobID     string // of a job, or of an array
	Condition Condition
}

// Predicted is for how long an attempt runs, as it was predicted: less with a chance of 10, 50 and 90 percent. The
// zero Predicted: nobody could say.
type Predicted struct{ P10, P50, P90 time.Duration }

// Job is a command that runs on GPUs of its own once it gets them, at one moment. Its state
// changes only through Apply.
type Job struct {
	ID             string
	OrganizationID string
	PoolID         string
	Name           string
	SubmittedBy    string // key
	UserID         string // person whose key it is; empty: none
	Priority       Priority
	Workload       capacity.Workload // what its GPUs are for; empty: batch
	Shape          capacity.Shape
	Command        Command
	MaxRuntime     time.Duration // of an attempt
	Grace          time.Duration // between TERM and KILL
	Checkpoint     Checkpoint
	Retries        Retries
	Preemptible    bool // it may be told to leave for others
	Dependencies   []Depends
	Reservation    string // that its first attempt claims, and waits for; empty: it waits in the queue
	Array          Array
	ArrayIndex     int
	Where          Where

	NotBefore    time.Time     // it does not start earlier; zero: at once
	Attempt      int           // the last one's number, from 1; 0: it never had GPUs
	AllocationID string        // of the last attempt
	Failures     int           // attempts that were tried again by Retries.Failed
	Losses       int           // and by Retries.Lost
	Preemptions  int           // attempts that left for other jobs
	Avoids       []string      // ids of nodes whose hardware ended an attempt
	Ending       Ending        // of the attempt that it has
	Awaited      Awaited       // for whom that is waited for
	Reason       string        // why it is in its state, a code
	End          End           // of the last attempt that ended
	GPUTime      time.Duration // for which its attempts held GPUs, times their number
	Cost         money.MicroUSD
	Predicted    Predicted // of the last attempt, when it got its GPUs

	SubmittedAt time.Time
	// EligibleAt is since when its wait counts: since it could run, or shall. What it ran is no wait, and is to be
	// taken off. Zero: something other than time keeps it from starting.
	EligibleAt  time.Time
	ScheduledAt time.Time // of the last attempt
	StartedAt   time.Time // when the last attempt ran on all of its nodes; zero: it has not
	EndedAt     time.Time
	Version     int

	state State
}

// New returns a job that waits: for GPUs, or until somebody lets it.
func New(j Job, held bool, now time.Time) Job {
	j.state, j.SubmittedAt = Pending, now
	if held {
		j.state = Held
	}
	return j.waitFrom(now)
}

// Restore returns j in a stored state. Only the store calls it.
func Restore(j Job, s State) (Job, error) {
	if !Machine.Known(s) {
		return j, fmt.Errorf("restoring job %s: unknown state %q", j.ID, s)
	}
	j.state = s
	return j, nil
}

// State returns where the job is in its life.
func (j Job) State() State { return j.state }

// Apply returns the job after the event, or a *statemachine.IllegalError. The receiver is not
// changed. reason is a short code that is stored and shown.
func (j Job) Apply(event Event, reason string, now time.Time) (Job, error) {
	to, err := Machine.Next(j.state, event)
	if err != nil {
		return j, err
	}
	j.state, j.Reason = to, reason
	if event == Hold || event == Release {
		j = j.waitFrom(now)
	}
	switch to {
	case Scheduled:
		if !j.IsEligible() {
			j.EligibleAt = now
		}
		j.Attempt++
		j.ScheduledAt, j.StartedAt = now, time.Time{}
	case Running:
		j.StartedAt = now
	case Pending, Held:
		j.StartedAt = time.Time{}
	}
	if !j.HasGPUs() {
		j.Ending, j.Awaited = Ending{}, Awaited{}
	}
	if j.Over() {
		j.EndedAt = now
	}
	return j, nil
}

// Over reports whether the job has come to its end.
func (j Job) Over() bool { return Machine.Terminal(j.state) }

// HasGPUs reports whether an attempt of the job is going on.
func (j Job) HasGPUs() bool {
	return j.state == Scheduled || j.state == Running || j.state == Preempted
}

// Verdict is what a dependency says of a job that waits for it.
type Verdict int

// The verdicts.
const (
	Wait  Verdict = iota // it may still come true
	Met                  // it is true
	Never                // it cannot come true any more
)

// JudgeAll says whether all of a job's dependencies are met, by the jobs and arrays that they name, and which of them
// are not: all for which it waits, or the first that never will be. One that is not there never will be.
func (j Job) JudgeAll(others map[string]Progress) (verdict Verdict, on []Depends) {
	verdict = Met
	for _, d := range j.Dependencies {
		is := d.Condition.Judge(others[d.JobID])
		if is == Never {
			return Never, []Depends{d}
		}
		if is == Wait {
			verdict, on = Wait, append(on, d)
		}
	}
	return verdict, on
}
