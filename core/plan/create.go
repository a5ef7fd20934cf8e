package plan

import (
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/node"
)

// Codes of what keeps the planner from asking for a node.
const (
	HeldRefused = "provider_refused" // the provider had nothing, or what it made was unfit
	HeldUnfit   = "machines_unfit"   // two in a row had one fault: nothing is asked for until a person says so
	HeldTrial   = "provider_tried"   // after many failures one node is tried before others are asked for
	HeldCapped  = "creation_capped"  // too many were asked for that served nobody
)

// Withheld is a node that is needed and may not be asked for yet.
type Withheld struct {
	Slot  int
	Codes []string // everything that keeps it, at least one
	// when it may be asked for if nothing else happens; for a trial, when that could end at the earliest
	Until time.Time
}

// withheldBy lists what keeps a missing node from being asked for. judgeBoot and every
// explanation go by it.
func (f Facts) withheldBy() []string {
	var codes []string
	switch {
	case f.Unfit != "":
		codes = append(codes, HeldUnfit)
	case !f.hasCome(f.BlockedUntil) || f.Breaker == learned.Open:
		codes = append(codes, HeldRefused)
	}
	if f.Breaker == learned.HalfOpen && f.Coming > 0 {
		codes = append(codes, HeldTrial)
	}
	if f.Recent >= f.Cap {
		codes = append(codes, HeldCapped)
	}
	return codes
}

// requestNode asks for a node, or notes what keeps it from being asked for.
func (c *computation) requestNode(slot int, because string) bool {
	s := c.Supply
	limit, window := Creates(c.Pool)
	f := Facts{
		For: because, Readiness: c.slotReadiness(slot).String(), Coming: c.comingCount,
		Breaker:      s.Breaker(c.policy.BreakAfter, c.now),
		BlockedUntil: s.BlockedUntil, Unfit: s.Stopped(), Recent: s.Created.Sum(window, c.now) + c.unservedCount,
		Cap:  limit,
		Odds: s.Odds(c.now), Failures: s.Failures, Boot50: c.boot50, Lead: c.boot95, Guard: c.policy.Guard,
	}
	if c.judge(Action{Kind: BootNode, Slot: slot, Facts: f}) {
		c.comingCount++
		c.requestedCount++
		c.unservedCount += countsAgainstCap(because)
		c.noteRequest(slot, c.now)
		return true
	}
	if codes := f.withheldBy(); len(codes) > 0 {
		w := Withheld{Slot: slot, Codes: codes, Until: c.nextTurn(because)}
		c.wakeAt(w.Until)
		c.noteRequest(slot, w.Until)
		c.withheld = append(c.withheld, w)
	}
	return false
}

// countsAgainstCap is how many of the nodes that the cap is for one is that was asked for: one
// for somebody who waits has somebody to serve. Should it never do so, Unserved
// counts it from then on.
func countsAgainstCap(because string) int {
	if because == ReasonDemand {
		return 0
	}
	return 1
}

// cappedQueue are the nodes that the cap holds back, one behind the other: each may be
// asked for when those before it were and enough of all have faded.
type cappedQueue struct {
	begun  bool
	window learned.Window
	at     time.Time // when the last of them may be asked for
}

// nextTurn is when the next node may be asked for as far as the cap goes.
func (c *computation) nextTurn(because string) time.Time {
	limit, length := Creates(c.Pool)
	q := &c.capped
	if !q.begun {
		q.begun, q.window = true, c.Supply.Created.Add(c.unservedCount, length, c.now)
		q.at = calendar.Later(c.now, c.Supply.BlockedUntil) // nobody's turn comes before
	}
	q.at = q.window.Below(limit, length, q.at)
	q.window = q.window.Add(countsAgainstCap(because), length, q.at)
	return q.at
}

// noteRequest notes when the node of a slot is asked for.
func (c *computation) noteRequest(slot int, at time.Time) {
	if c.requestTimes == nil {
		c.requestTimes = map[int]time.Time{}
	}
	c.requestTimes[slot] = at
}

// earliestRequestOn is when a node for the slot may be asked for.
func (c *computation) earliestRequestOn(slot int) time.Time {
	if at, ok := c.requestTimes[slot]; ok {
		return at
	}
	return c.earliestRequest()
}

// earliestRequest is when a node could be asked for that nobody asked for yet.
func (c *computation) earliestRequest() time.Time {
	limit, length := Creates(c.Pool)
	window := c.Supply.Created.Add(c.unservedCount, length, c.now)
	if c.capped.begun {
		window = c.capped.window
	}
	return calendar.Later(calendar.Later(c.now, c.Supply.BlockedUntil),
		window.Below(limit, length, calendar.Later(c.now, c.capped.at)))
}

// Capped returns until when the pool asks for no node because too many were asked
// for lately that served nobody; the zero time where that is not so.
func (s *Snapshot) Capped(now time.Time) time.Time {
	limit, length := Creates(s.Pool)
	if until := s.Unserved(now).Below(limit, length, now); until.After(now) {
		return until
	}
	return time.Time{}
}

// Unserved are the nodes that were asked for lately and serve nobody: without those
// that nobody used before and that somebody waits for.
func (s *Snapshot) Unserved(now time.Time) learned.Window {
	_, length := Creates(s.Pool)
	if s.Created.Sum(length, now) == 0 {
		return s.Created
	}
	used, awaited := map[string]bool{}, map[int]bool{}
	for i := range s.Allocations {
		a := &s.Allocations[i]
		for _, d := range a.Devices {
			used[d.NodeID] = true
		}
		for _, slot := range a.Slots {
			awaited[slot] = awaited[slot] || a.State() == allocation.Pending
		}
	}
	var serving []time.Time
	for i := range s.Nodes {
		n := &s.Nodes[i]
		fresh := n.Coming() || n.State() == node.Ready && n.IdleSince.Equal(n.ReadyAt) && !used[n.ID]
		if awaited[n.Slot] && fresh && now.Sub(n.RequestedAt) < length {
			serving = append(serving, n.RequestedAt)
		}
	}
	return s.Created.Take(serving, length, now)
}
