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
	Length time.Duration // of its last attempt, or of earlier ones that were longer
	Cut    bool          // it would have run for longer: its time was over, somebody cancelled it, or a node took it along
}

// shortest is how long a job that did not complete must have run to count: one that ends sooner had a wrong path or a
// missing package, or was a mistake, and says nothing of the work.
const shortest = time.Minute

// Counts reports whether a job that ended like this says how long such jobs run: if it completed, if its time was over,
// or if it ended otherwise after a while.
func Counts(state job.State, reason string, length time.Duration) bool {
	switch {
	case length <= 0 || !job.Machine.Terminal(state):
		return false
	case state == job.Completed, reason == job.TimeLimit:
		return true
	}
	return length >= shortest
}

// isCut reports whether a job that ended like this would have run for longer. Were it left out, then who cancels what
// runs for long would be taken for somebody whose jobs are short.
func isCut(state job.State, reason string) bool {
	return state != job.Completed && reason != job.Exit && reason != job.Signalled && reason != job.OOM
}

// RunOf is the run of a job; false: it says nothing.
func RunOf(j job.Job) (Run, bool) {
	if !j.Over() || j.StartedAt.IsZero() {
		return Run{}, false
	}
	r := Run{User: UserOf(j), Name: j.Name, GPUs: j.Shape.GPUs(), Length: j.EndedAt.Sub(j.StartedAt),
		Cut: isCut(j.State(), j.Reason)}
	counts := Counts(j.State(), j.Reason, r.Length)
	// The longest of the attempts before was at least as long as they were on average, and would have gone on.
	if before := (j.Ran() - r.Length) / time.Duration(max(j.Attempt-1, 1)); j.Attempt > 1 && before > r.Length {
		r.Length, r.Cut = before, true
	}
	return r, counts
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
