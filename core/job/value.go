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
}

// Checkpoint has a job told by a signal that its end is near.
type Checkpoint struct {
	Signal string // such as USR1; empty: it is not told
	Before time.Duration
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
)

// Depends is a condition on another job.
type Depends struct {
	JobID     string
	Condition Condition
}

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
	Shape          capacity.Shape
	Command        Command
	MaxRuntime     time.Duration // of an attempt
	Grace          time.Duration // between TERM and KILL
	Checkpoint     Checkpoint
	Retries        Retries
	Dependencies   []Depends
	ArrayID        string // empty: it is in none
	ArrayIndex     int

	NotBefore    time.Time     // it does not start earlier; zero: at once
	Attempt      int           // the last one's number, from 1; 0: it never had GPUs
	AllocationID string        // of the last attempt
	Failures     int           // attempts that were tried again by Retries.Failed
	Losses       int           // and by Retries.Lost
	Reason       string        // why it is in its state, a code
	End          End           // of the last attempt that ended
	GPUTime      time.Duration // for which its attempts held GPUs, times their number
	Cost         money.MicroUSD

	SubmittedAt time.Time
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
	return j
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
	switch to {
	case Scheduled:
		j.Attempt++
		j.ScheduledAt, j.StartedAt = now, time.Time{}
	case Running:
		j.StartedAt = now
	case Pending:
		j.StartedAt = time.Time{}
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

// Judge says whether a condition on another job is met. Only the final state counts: a job that
// failed and is tried again has not failed.
func (c Condition) Judge(other Job) Verdict {
	ok := other.state == Completed
	switch {
	case c == After && (!other.StartedAt.IsZero() || other.End.Ran || ok):
		return Met
	case !other.Over():
		return Wait
	case c == AfterAny, c == AfterOK && ok, c == AfterNotOK && !ok:
		return Met
	}
	return Never
}

// JudgeAll says whether all of a job's dependencies are met, by the jobs that they name. One that
// is not there never will be.
func (j Job) JudgeAll(others map[string]Job) (verdict Verdict, on Depends) {
	verdict = Met
	for _, d := range j.Dependencies {
		other, known := others[d.JobID]
		is := Never
		if known {
			is = d.Condition.Judge(other)
		}
		if is == Never {
			return Never, d
		}
		if is == Wait && verdict == Met {
			verdict, on = Wait, d
		}
	}
	return verdict, on
}
