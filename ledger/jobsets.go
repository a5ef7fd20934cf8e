package ledger

import (
	"github.com/forewarm/forewarm/core/job"
)

// MostJobsAtOnce bounds the jobs that one transaction changes of a set of jobs.
const MostJobsAtOnce = 200

// MostRefusedJobs bounds the refusals that are told of a set of jobs. Others are counted.
const MostRefusedJobs = 20

// JobSet says which jobs one request changes: those of an array, or those that the actor submitted.
type JobSet struct {
	ArrayID string
	Mine    bool
	PoolID  string   // only those in this pool; empty: in any
	State   []string // only those in any of these states; none: in any
	After   string   // only those with a larger id; empty: all
}

// Check returns *InvalidError for a set that is not said to be of one kind: nothing has all jobs changed by mistake.
func (s JobSet) Check() error {
	switch {
	case s.ArrayID == "" && !s.Mine:
		return &InvalidError{Field: "array_id", Rule: "must be given, unless mine is true",
			Fix: "name an array, or ask for all jobs that you submitted with mine"}
	case s.ArrayID != "" && s.Mine:
		return &InvalidError{Field: "mine", Rule: "must not be given beside array_id", Fix: "leave one of them out"}
	}
	return nil
}

// FilterFor is the set as a filter, but for the state, where the actor asks.
func (s JobSet) FilterFor(actor Actor) JobFilter {
	f := JobFilter{ArrayID: s.ArrayID, PoolID: s.PoolID}
	switch {
	case !s.Mine:
	case actor.UserID != "":
		f.UserID = actor.UserID
	default:
		f.SubmittedBy = actor.KeyID
	}
	return f
}

// JobsChanged is what became of some jobs of a set.
type JobsChanged struct {
	Changed   int
	Unchanged int // they were as they were to be, or over, or nothing could be done to jobs in their state
	Refused   int
	Refusals  []RefusedJob // of the first MostRefusedJobs
	Next      string       // what to go on after; empty: no job of the set is left
}

// RefusedJob is a job that was not changed, and why.
type RefusedJob struct {
	ID  string
	Err error
}

// Refuse counts a job that is not changed.
func (c *JobsChanged) Refuse(j job.Job, err error) {
	c.Refused++
	if len(c.Refusals) < MostRefusedJobs {
		c.Refusals = append(c.Refusals, RefusedJob{ID: j.ID, Err: err})
	}
}
