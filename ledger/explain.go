package ledger

import (
	"time"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/core/wait"
)

// Explanation is why something is as it is, what stands in its way, and what
// comes next.
type Explanation struct {
	At        time.Time
	Kind      string // reservation, allocation, job, node, pool, schedule or request
	Subject   string // empty: a request that was only asked about
	State     string
	Reason    string // a code
	Summary   string // one sentence for people
	PoolID    string
	Since     time.Time
	Degraded  bool
	Blockers  []Blocker
	Refused   *RefusedError     // of what admission refuses now, else nil
	Take      string            // a command that has what is refused take an offer; empty: none is known
	Instead   []admission.Offer // where what gave way would have had a place, then
	Wait      *wait.Estimate    // of what waits, else nil
	Waits     []WorkWaits       // of an observed pool, by reason
	Next      []Step            // in the order of their times
	Decisions []Event           // newest first
	Effect    Effect            // of a request that was only asked about
}

// Blocker is one thing that stands in the way, beside what admission refuses.
type Blocker struct {
	Code     string
	Message  string
	Evidence []string // ids and numbers that were looked at
	Fix      string   // a command; may be empty
	ClearsAt *Band    // nil: time alone does not clear it
}

// Band is an instant that is not known: it is earlier with a chance of 10, 50
// and 90 percent.
type Band struct{ P10, P50, P90 time.Time }

// Step is something that happens at a time unless something else does before.
type Step struct {
	Code    string
	At      time.Time
	Message string
}

// CodeRecovering is the blocker of a pool that only reconciles.
const CodeRecovering = "recovering"

// ClearsAt says when what is full is likely to have room: as early as the wait
// says, or when the calendar promises it.
func (e Explanation) ClearsAt() *Band {
	if e.Wait == nil {
		return nil
	}
	return &Band{P10: e.At.Add(e.Wait.P10), P50: e.At.Add(e.Wait.P50), P90: e.At.Add(e.Wait.P90)}
}

// DescribeDate tells in a few words what became of a date.
func (d ScheduleDate) DescribeDate() string {
	switch d.State {
	case DateComing:
		return "not requested yet"
	case DatePaused:
		return "not requested while the schedule is paused"
	case DateMissed:
		return "never requested"
	case DateRefused:
		return "refused: " + d.Message
	case string(reservation.Waitlisted):
		return d.ReservationID + " waits for a place"
	default:
		return d.ReservationID + " is " + d.State
	}
}

// CodeProviderFailing is the blocker of a node whose provider fails, and
// ProviderRefuses what tenants are told of it: what providers say is operators'.
const (
	CodeProviderFailing = "provider_failing"
	ProviderRefuses     = "its provider refuses: ask an operator"
)
