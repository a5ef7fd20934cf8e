package job

import (
	"math"
	"time"
)

// RankState is how far an attempt is on one of its nodes.
type RankState string

// The states of a rank.
const (
	Ordered     RankState = "ordered" // its node's daemon has been, or will be, told to start it
	RankRunning RankState = "running"
	RankEnded   RankState = "ended"
)

// Rank is an attempt of a job on one of its nodes. There is one for each node, from when the
// attempt has its GPUs on.
type Rank struct {
	JobID   string
	Attempt int
	Rank    int // from 0
	NodeID  string
	State   RankState
	End     End // counts once it has ended
}

// IsSame reports whether another one is of the same attempt and place in it.
func (r Rank) IsSame(o Rank) bool {
	return o.JobID == r.JobID && o.Attempt == r.Attempt && o.Rank == r.Rank
}

// Why an attempt ended, as a code.
const (
	Exit       = "exit"        // by itself, with an exit code other than 0
	Signalled  = "signal"      // by a signal that nobody here sent
	TimeLimit  = "time_limit"  // its time was over
	OOM        = "oom"         // the memory of its allocation on a node, or all of the node's, was full
	NotStarted = "not_started" // nothing ran: there is no such program, for example
	Unserved   = "not_served"  // nothing ran: no daemon of its nodes took it
	Lost       = "node_lost"   // its node, its GPUs, or what watched it, ended first
	LeaseOver  = "lease_over"  // its allocation ended although nothing was known against it
	Dependency = "dependency"  // what it waits for can never come true
	Asked      = "asked"       // somebody wanted it
	Unreserved = "reservation" // what it was to run in is not there any more
	KeyRevoked = "key_revoked" // whoever submitted it may not book any more
)

// End is how an attempt ended, on one node or as a whole.
type End struct {
	Code     string // one of the codes; empty: with success
	ExitCode int    // 128 and the signal's number if one ended it
	Signal   string // such as KILL
	Reason   string // for people
	Ran      bool   // ExitCode is its own
	// PeakMemory is the most memory that it had at once on a node, in bytes; 0: it is not known.
	PeakMemory int64 `json:",omitempty"`
	// At is when it ended, which may be long before that could be heard; zero: it is not known.
	At time.Time `json:",omitzero"`
}

// Success reports whether it ended by itself with exit code 0.
func (e End) Success() bool { return e.Code == "" }

// Combine says how an attempt with these ranks ended; false: it goes on. It ends with the first
// rank that fails, whatever the others do: a gang of which one is missing waits for ever.
func Combine(ranks []Rank) (End, bool) {
	ended, out, over := 0, End{Ran: true}, false
	var last time.Time
	for _, r := range ranks {
		if r.State != RankEnded {
			continue
		}
		ended++
		peak := max(out.PeakMemory, r.End.PeakMemory)
		if !over && !r.End.Success() {
			out, over = r.End, true
		}
		out.PeakMemory = peak
		if r.End.At.After(last) {
			last = r.End.At
		}
	}
	if out.At = last; ended < len(ranks) {
		out.At = time.Time{} // the others end now
	}
	return out, over || len(ranks) > 0 && ended == len(ranks)
}

// AllRunning reports whether every rank has begun.
func AllRunning(ranks []Rank) bool {
	for _, r := range ranks {
		if r.State == Ordered {
			return false
		}
	}
	return len(ranks) > 0
}

// How long a job waits before it is tried again: twice as long after each time.
const (
	firstBackoff = 5 * time.Second
	lastBackoff  = 10 * time.Minute
)

func backoff(times int) time.Duration {
	return min(time.Duration(float64(firstBackoff)*math.Pow(2, float64(times-1))), lastBackoff)
}

// Finish returns the job after its attempt has ended: over, or waiting for its next one. What went
// wrong without its doing is tried again as often as Retries.Lost says, what it did itself as
// often as Retries.Failed, and what ran out of its time or its memory not at all: it would again.
func (j Job) Finish(e End, now time.Time) (Job, error) {
	j.End = e
	switch {
	case e.Success():
		return j.endAt(e.At, Complete, "", now)
	case (e.Code == Unserved || e.Code == Lost || e.Code == Stopped) && j.Losses < j.Retries.Lost:
		j.Losses++
		j.NotBefore = now.Add(backoff(j.Losses))
		return j.Apply(j.Ending.back(), e.Code, now)
	case (e.Code == Exit || e.Code == Signalled || e.Code == NotStarted) && j.Failures < j.Retries.Failed:
		j.Failures++
		j.NotBefore = now.Add(backoff(j.Failures))
		return j.Apply(j.Ending.back(), e.Code, now)
	}
	return j.endAt(e.At, Fail, e.Code, now)
}

// endAt is Apply where the job's last attempt may have ended before that was heard.
func (j Job) endAt(at time.Time, event Event, reason string, now time.Time) (Job, error) {
	next, err := j.Apply(event, reason, now)
	if err == nil && next.Over() && !at.IsZero() && at.Before(now) {
		next.EndedAt = at
		for _, earliest := range []time.Time{j.StartedAt, j.ScheduledAt} {
			if next.EndedAt.Before(earliest) {
				next.EndedAt = earliest
			}
		}
	}
	return next, err
}
