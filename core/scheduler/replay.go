package scheduler

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// Replayed is what a record's state gives when it is decided on again.
type Replayed struct {
	// Order are the jobs that wait, as the first cycle looked at them, with what their turn went by.
	Order  []Turn
	Rounds []Round
	Next   []string
	// Difference is where the decision is another one than the recorded one; empty: nowhere.
	Difference string
}

// Turn is a job that waits, with what decides when it is its turn.
type Turn struct {
	Job
	Waited       time.Duration
	Band         int
	Overdue      bool
	TenantExcess float64 // how many times its fair share its tenant has had
	UserExcess   float64 // how many times as much its user has had as the tenant's others who wait
}

// Replay decides again on the state of a record, by a policy, which may be another one than the record's: then what was
// put back is put back again as far as it starts. It fails where the state is none that can be.
func Replay(r Record, by Policy) (out Replayed, err error) {
	s, err := Restore(by, r.State)
	if err != nil {
		return out, fmt.Errorf("restoring the state of a record: %w", err)
	}
	out.Order = turns(s, r.Now)
	s, err = Restore(by, r.State) // as it was before anybody asked for the order
	if err != nil {
		return out, fmt.Errorf("restoring the state of a record: %w", err)
	}
	for _, recorded := range r.Rounds {
		again := Round{Decision: s.Cycle(r.Now), PutBack: recorded.PutBack}
		out.Rounds = append(out.Rounds, again)
		putBack(s, recorded.PutBack, r.Now)
	}
	if len(r.Ends) > 0 {
		out.Next = Successors(s, r.Now, r.Ends, MostNext)
	}
	if out.Difference, err = differ(r, out); err != nil {
		return out, err
	}
	return out, nil
}

// MostNext is how many turns a record has at most.
const MostNext = 64

// NextTurns are those whose turn is next in a record, and is noted in it. The scheduler is of no use any more then.
func NextTurns(s *Scheduler, r *Record, now time.Time, ends []string) []string {
	next := Successors(s, now, ends, MostNext)
	if r != nil {
		r.Ends, r.Next = ends, next
	}
	return next
}

// turns lists who waits and may start, in order.
func turns(s *Scheduler, now time.Time) []Turn {
	s.wakeLater(now)
	ids := s.Order(now)
	all := make([]Turn, 0, len(ids))
	for _, id := range ids {
		w := s.jobs[id]
		is := standingOf(&w.Job)
		t := Turn{Job: w.Job, Waited: is.waited(now), Band: s.policy.band(w.Attained, w.Request.GPUs())}
		_, t.Overdue = s.due(is, w.line, now)
		t.TenantExcess, t.UserExcess = Excess(s, id)
		all = append(all, t)
	}
	return all
}

// differ says in which of the rounds a replay decided otherwise, and in what.
func differ(r Record, again Replayed) (string, error) {
	for i, was := range r.Rounds {
		is := again.Rounds[i]
		for _, part := range []struct {
			name    string
			was, is any
		}{
			{"starts", was.Starts, is.Starts}, {"promises", was.Promised, is.Promised}, {"broken promises", was.Broken,
				is.Broken}, {"plans", was.Plans, is.Plans}, {"awaited ends", was.Awaited, is.Awaited},
			{"blocked jobs", was.Blocked, is.Blocked}, {"time", was.At, is.At},
		} {
			same, err := isSame(part.was, part.is)
			if err != nil {
				return "", err
			}
			if !same {
				return fmt.Sprintf("in cycle %d of %d the %s differ", i+1, len(r.Rounds), part.name), nil
			}
		}
	}
	if same, err := isSame(r.Next, again.Next); err != nil || !same {
		return "whose turn is next differs", err
	}
	return "", nil
}

// isSame compares values as they are recorded.
func isSame(a, b any) (bool, error) {
	one, err := json.Marshal(a)
	if err != nil {
		return false, fmt.Errorf("comparing decisions: %w", err)
	}
	other, err := json.Marshal(b)
	if err != nil {
		return false, fmt.Errorf("comparing decisions: %w", err)
	}
	return bytes.Equal(one, other), nil
}
