package job

import (
	"time"

	"github.com/forewarm/forewarm/core/statemachine"
)

// Then is what becomes of a job whose attempt was told to end, once it has.
type Then string

// What becomes of it.
const (
	ThenCancelled Then = "cancelled"
	ThenRequeued  Then = "requeued"  // it waits again
	ThenPreempted Then = "preempted" // it leaves for another job, and waits again
)

// Stopped is the code of a rank's end that was told to end: its exit code says nothing of its work.
const Stopped = "stopped"

// LeftForAnother is the reason of a job that waits again because it left for another one.
const LeftForAnother = "preempted"

// toldWithin is how long, beside its grace, an attempt may take that was told to end: until its
// nodes' daemons have heard of it, and until they have sent its output and reported.
const toldWithin = 90 * time.Second

// Ending is how an attempt is being ended. The zero Ending: nobody told it to.
type Ending struct {
	Then  Then          `json:"then"`
	Asked time.Time     `json:"asked"`
	Lead  time.Duration `json:"lead,omitempty"` // after the checkpoint's signal, until TERM; 0: there is no such signal
	Grace time.Duration `json:"grace"`          // after TERM, until KILL
	By    time.Time     `json:"by"`             // then its GPUs are taken, whatever is known of it
	For   string        `json:"for,omitempty"`  // the job for which it leaves
	Hold  bool          `json:"hold,omitempty"` // it is held instead of waiting again
}

// Awaited is for whom an attempt is waited for that would else have been told to leave. The zero Awaited: for nobody.
type Awaited struct {
	For   string    `json:"for"`   // the job that waits for its GPUs
	Until time.Time `json:"until"` // when it is predicted to have ended; if it has not, it is told to leave then
}

// Is reports whether the attempt is waited for.
func (a Awaited) Is() bool { return a.For != "" }

// Is reports whether the attempt was told to end.
func (e Ending) Is() bool { return e.Then != "" }

// Returns reports whether the job comes back once the attempt has ended.
func (e Ending) Returns() bool { return e.Then == ThenRequeued || e.Then == ThenPreempted }

// back is how the job comes back from an attempt.
func (e Ending) back() Event {
	if e.Hold {
		return Shelve
	}
	return Requeue
}

// KillAt is when what has not ended gets KILL, where the attempt's nodes heard at once that it is to end.
func (e Ending) KillAt() time.Time { return e.By.Add(-toldWithin) }

// IsOverdue reports whether the attempt should have ended by now.
func (e Ending) IsOverdue(now time.Time) bool { return e.Is() && !now.Before(e.By) }

// TellToEnd returns the job once its attempt has been told to end. It has its own grace; one that
// leaves for another job has its checkpoint's notice, too, and takes no longer than most in all.
func (j Job) TellToEnd(then Then, most time.Duration, now time.Time) (Job, error) {
	if !j.HasGPUs() {
		return j, &statemachine.IllegalError{Machine: Machine.Name, State: string(j.state), Event: "end"}
	}
	e := Ending{Then: then, Asked: now, Grace: j.Grace}
	if then == ThenPreempted {
		var err error
		if j, err = j.Apply(Preempt, LeftForAnother, now); err != nil {
			return j, err
		}
		e.Grace = min(e.Grace, most)
		if lead := min(j.Checkpoint.Before, most-e.Grace); j.Checkpoint.Signal != "" && lead >= time.Second {
			e.Lead = lead.Truncate(time.Second)
		}
	}
	e.By = now.Add(e.Lead + e.Grace + toldWithin)
	j.Ending = e
	return j, nil
}

// EndAsTold returns the job after the end of an attempt that was told to end, as its nodes say it ended; zero: they
// were not heard. One that had completed before it heard of that has completed.
func (j Job) EndAsTold(e End, now time.Time) (Job, error) {
	then, back := j.Ending.Then, j.Ending.back()
	j.Ending = Ending{}
	switch {
	case e.Ran && e.Success() && j.state != Scheduled:
		return j.Finish(e, now)
	case then == ThenCancelled:
		return j.endAt(e.At, Cancel, Asked, now)
	case then == ThenPreempted:
		j.Preemptions++
		return j.Apply(back, LeftForAnother, now)
	}
	return j.Apply(back, Asked, now)
}

// AllEnded reports whether every rank has ended.
func AllEnded(ranks []Rank) bool {
	for _, r := range ranks {
		if r.State != RankEnded {
			return false
		}
	}
	return len(ranks) > 0
}
