package scheduler

import (
	"fmt"
	"time"

	"github.com/forewarm/forewarm/core/placement"
	"github.com/forewarm/forewarm/core/queue"
)

// Job is what decides when and where a job runs.
type Job struct {
	ID           string
	Tenant, User string
	Key          string // that submitted it
	Class        string // of priority
	Group        Group
	Request      placement.Request
	MaxRuntime   time.Duration // after which an attempt is ended; 0: the policy's
	Predicted    time.Duration // of an attempt, for the order; 0: MaxRuntime
	Eligible     time.Time     // since when it could run, however often it came back
	NotBefore    time.Time     // it does not start earlier; zero: at once
	Preemptible  bool
	Checkpoint   time.Duration // it keeps its work this often; 0: never
	Attained     time.Duration // what it ran in earlier attempts and did not lose
	Preemptions  int           // how often it has left for others
}

// Running is a job that holds GPUs.
type Running struct {
	Job
	Spots   placement.Placement
	Started time.Time
	Until   time.Time // when it ends at the latest
	EndsBy  time.Time // when it is predicted to have ended; zero: Started and Predicted say
	Leaving bool      // it was told to leave
	Overdue bool      // it was served because it had waited for too long, and leaves for nobody
}

// Refused is why a job may not wait.
type Refused string

// The reasons to refuse a job.
const (
	RefusedFull      Refused = "queue_full"
	RefusedDuplicate Refused = "duplicate_id"
	RefusedRate      Refused = Refused(queue.WaitRate)
	RefusedDaily     Refused = Refused(queue.WaitDaily)
	RefusedInvalid   Refused = "invalid_request"
)

// RefusedError says why a job may not wait, and from when on it may.
type RefusedError struct {
	Job    string
	Reason Refused
	Opens  time.Time // zero: not by waiting, or nobody can say
}

// Error names the job and the reason.
func (e *RefusedError) Error() string { return fmt.Sprintf("job %q may not wait: %s", e.Job, e.Reason) }

// waited is how long the job has waited in all, since it could run: what it ran is no waiting.
func (j standing) waited(now time.Time) time.Duration {
	return max(time.Duration(now.UnixNano()-j.eligible)-j.attained, 0)
}

// lost is the work that the job loses by leaving now, in time.
func (r Running) lost(now time.Time) time.Duration {
	ran := max(now.Sub(r.Started), 0)
	if r.Checkpoint <= 0 {
		return ran
	}
	return ran % r.Checkpoint
}

// kept is the work of this attempt that the job would still have after leaving now.
func (r Running) kept(now time.Time) time.Duration {
	return max(now.Sub(r.Started), 0) - r.lost(now)
}

// endsBy reports whether the job is predicted to end by t. What has outlived its
// prediction is not.
func (r Running) endsBy(t, now time.Time) bool {
	end := r.EndsBy
	if end.IsZero() {
		end = r.Started.Add(r.Predicted)
	}
	return end.After(now) && !end.After(t)
}
