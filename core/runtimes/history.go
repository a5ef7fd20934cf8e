// Package runtimes predicts for how long an attempt of a job runs, from how long others of its
// organization ran.
//
// A prediction is three quantiles. What a job may run at most stays its limit: nothing is ended or promised by a
// prediction, which decides on the order in which jobs start.
package runtimes

import (
	"time"

	"github.com/forewarm/forewarm/core/job"
)

// Run is how long a job ran that is over.
type Run struct {
	User   string // who submitted it
	Name   string // that jobs of an array share; empty: it has none
	GPUs   int
	Length time.Duration // of its last attempt
	Cut    bool          // its time was over: it would have run for longer
}

// shortestFailure is how long a job that failed must have run to count: one that ends sooner had a wrong path or
// a missing package, and says nothing of the work.
const shortestFailure = time.Minute

// Counts reports whether a job that ended like this says how long such jobs run: if it completed, if it
// failed by itself after a while, or if its time was over. What somebody cancelled and what a node took with
// it does not: it would have ended at another time.
func Counts(state job.State, reason string, length time.Duration) bool {
	switch {
	case length <= 0:
		return false
	case state == job.Completed:
		return true
	case state != job.Failed:
		return false
	case reason == job.TimeLimit:
		return true
	}
	return length >= shortestFailure && (reason == job.Exit || reason == job.Signalled || reason == job.OOM)
}

// RunOf is the run of a job; false: it says nothing.
func RunOf(j job.Job) (Run, bool) {
	if !j.Over() || j.StartedAt.IsZero() {
		return Run{}, false
	}
	length := j.EndedAt.Sub(j.StartedAt)
	return Run{User: UserOf(j), Name: j.Name, GPUs: j.Shape.GPUs(), Length: length, Cut: j.Reason == job.TimeLimit},
		Counts(j.State(), j.Reason, length)
}

// UserOf is whose runs are like those of a job: the person's who submitted it, or the key's if it is nobody's.
func UserOf(j job.Job) string {
	if j.UserID != "" {
		return j.UserID
	}
	return j.SubmittedBy
}

// History is what an organization ran lately, the newest first.
type History struct {
	Named []Run // those with the name of the job that is asked about
	All   []Run
}

// Subject is the attempt that is asked about.
type Subject struct {
	User  string
	Name  string
	GPUs  int
	Limit time.Duration // it runs no longer
	Age   time.Duration // for which it has run; 0: it has not begun
}

// SubjectOf is a job's attempt at a moment.
func SubjectOf(j job.Job, now time.Time) Subject {
	s := Subject{User: UserOf(j), Name: j.Name, GPUs: j.Shape.GPUs(), Limit: j.MaxRuntime}
	if j.HasGPUs() && !j.StartedAt.IsZero() {
		s.Age = max(now.Sub(j.StartedAt), 0)
	}
	return s
}
