package node

import (
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/calendar"
)

// Quarantines are the times that a node spent in quarantine.
type Quarantines struct {
	// Kept says that an operator keeps the node for inspection: nothing but an
	// operator, or the end of its machine, ends this quarantine.
	Kept bool
	// Resuming says that an operator wants the node back, once it has passed the
	// health gate.
	Resuming bool
	// Spans are the times, oldest first. The End of one that goes on is zero.
	Spans []calendar.Interval
	// Why is what the operator who keeps it said of that, for people; empty: nothing.
	Why string
	// WarnedAt is when somebody was last told how long this one lasts.
	WarnedAt time.Time
}

// Since is when the quarantine that goes on began; zero: none does.
func (q Quarantines) Since() time.Time {
	if n := len(q.Spans); n > 0 && q.Spans[n-1].End.IsZero() {
		return q.Spans[n-1].Start
	}
	return time.Time{}
}

// afterMove returns the quarantines after the node went from one state to another.
func (q Quarantines) afterMove(from, to State, now time.Time) Quarantines {
	switch {
	case from != Quarantined && to == Quarantined:
		return Quarantines{Spans: append(slices.Clone(q.Spans), calendar.Interval{Start: now})}
	case from == Quarantined && to != Quarantined:
		spans := slices.Clone(q.Spans)
		if n := len(spans); n > 0 {
			spans[n-1].End = now
		}
		return Quarantines{Spans: spans}
	default:
		return q
	}
}

// Kept reports whether an operator keeps the node for inspection.
func (n Node) Kept() bool { return n.state == Quarantined && n.Quarantine.Kept }

// keptFor ends what nobody knows the end of.
const keptFor = 100 * 366 * 24 * time.Hour

// Occupies makes a node a calendar.Occupant while an operator keeps it: nobody else gets
// its slot until then.
func (n Node) Occupies(perSlot int) (calendar.Booking, bool) {
	since := n.Quarantine.Since()
	return calendar.Booking{ID: "kept:" + n.ID, Slots: []int{n.Slot}, GPUs: perSlot,
		Interval: calendar.Interval{Start: since, End: since.Add(keptFor)}}, n.Kept()
}
