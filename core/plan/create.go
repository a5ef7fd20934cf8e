package plan

import (
	"time"

	"github.com/forewarm/forewarm/core/allocation"
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
	Codes []string  // everything that keeps it, at least one
	Until time.Time // when it may be asked for if nothing else happens; for a trial, when that could end at the earliest
}

// held lists what keeps a missing node from being asked for. judgeBoot and every
// explanation go by it.
func (f Facts) held() []string {
	var codes []string
	switch {
	case f.Unfit != "":
		codes = append(codes, HeldUnfit)
	case !f.reached(f.BlockedUntil) || f.Breaker == Open:
		codes = append(codes, HeldRefused)
	}
	if f.Breaker == HalfOpen && f.Coming > 0 {
		codes = append(codes, HeldTrial)
	}
	if f.Recent >= f.Cap {
		codes = append(codes, HeldCapped)
	}
	return codes
}

// create asks for a node, or notes what keeps it from being asked for.
func (c *computation) create(slot int, because string) bool {
	s := c.Supply
	limit, window := Creates(c.Pool)
	f := Facts{
		For: because, Standing: c.slotStanding(slot).String(), Coming: c.creating,
		Breaker:      s.Breaker(c.policy.BreakAfter, c.now),
		BlockedUntil: s.BlockedUntil, Unfit: s.Stopped(), Recent: s.Created.Sum(window, c.now) + c.unserved, Cap: limit,
		Odds: s.Odds(c.now), Failures: s.Failures, Boot50: c.boot50, Lead: c.boot95, Guard: c.policy.Guard,
	}
	if c.judge(Action{Kind: BootNode, Slot: slot, Facts: f}) {
		c.creating++
		c.created++
		c.unserved += counted(because)
		c.due(slot, c.now)
		return true
	}
	if codes := f.held(); len(codes) > 0 {
		w := Withheld{Slot: slot, Codes: codes, Until: c.turn(because)}
		c.at(w.Until)
		c.due(slot, w.Until)
		c.withheld = append(c.withheld, w)
	}
	return false
}

// counted is how many of the nodes that the cap is for one is that was asked for: one
// for somebody who waits has somebody to serve. Should it never do so, Unserved
// counts it from then on.
func counted(because string) int {
	if because == ReasonDemand {
		return 0
	}
	return 1
}

// creates are the nodes that the cap holds back, one behind the other: each may be
// asked for when those before it were and enough of all have faded.
type creates struct {
	begun  bool
	window Window
	at     time.Time // when the last of them may be asked for
}

// turn is when the next node may be asked for as far as the cap goes.
func (c *computation) turn(because string) time.Time {
	limit, length := Creates(c.Pool)
	q := &c.turns
	if !q.begun {
		q.begun, q.window = true, c.Supply.Created.Add(c.unserved, length, c.now)
		q.at = later(c.now, c.Supply.BlockedUntil) // nobody's turn comes before
	}
	q.at = q.window.Below(limit, length, q.at)
	q.window = q.window.Add(counted(because), length, q.at)
	return q.at
}

// due notes when the node of a slot is asked for.
func (c *computation) due(slot int, at time.Time) {
	if c.asks == nil {
		c.asks = map[int]time.Time{}
	}
	c.asks[slot] = at
}

// askableOn is when a node for the slot may be asked for.
func (c *computation) askableOn(slot int) time.Time {
	if at, ok := c.asks[slot]; ok {
		return at
	}
	return c.askable()
}

// askable is when a node could be asked for that nobody asked for yet.
func (c *computation) askable() time.Time {
	limit, length := Creates(c.Pool)
	window := c.Supply.Created.Add(c.unserved, length, c.now)
	if c.turns.begun {
		window = c.turns.window
	}
	return later(later(c.now, c.Supply.BlockedUntil), window.Below(limit, length, later(c.now, c.turns.at)))
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
func (s *Snapshot) Unserved(now time.Time) Window {
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
	serves := 0
	for i := range s.Nodes {
		n := &s.Nodes[i]
		fresh := n.Coming() || n.State() == node.Ready && n.IdleSince.Equal(n.ReadyAt) && !used[n.ID]
		if awaited[n.Slot] && fresh && now.Sub(n.RequestedAt) < length {
			serves++
		}
	}
	return s.Created.Take(serves, length, now)
}
