package plan

import (
	"slices"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
)

// attempts bounds how many slots are tried to be cleared for one booking.
const attempts = 16

// makeRoom clears slots for a booking that would be late, or has no place, by
// moving promises that are not warm yet and whose own time has not come. It
// moves all that it takes, or nothing, and returns the booking's slots. Of a shape
// whose last node has fewer GPUs that node's slot is cleared last.
func (c *computation) makeRoom(b calendar.Booking, shape capacity.Shape) []int {
	allowed := c.totalCost(b.Slots)/max(1, len(b.Slots)) - 1 // better than what it has on average
	window := b.Interval.From(c.now)
	c.places.Remove(b.ID)
	defer c.places.Force(b)
	clearing := clearing{computation: c, window: window, shape: shape}
	for cost := costReady; cost <= min(allowed, costMissing); cost += 2 {
		for slot := 0; slot < c.Pool.MaxNodes && len(clearing.slots) < shape.Nodes &&
			clearing.tried <= attempts; slot++ {
			if c.costOf(slot) == cost {
				clearing.clearSlot(slot)
			}
		}
	}
	if len(clearing.slots) < shape.Nodes {
		clearing.undoAll()
		return b.Slots
	}
	for _, m := range clearing.moves {
		c.places.noteOriginal(m.from)
		c.shifted[m.from.ID] = true
		c.noteUse(m.to.Slots, m.to.Interval)
		c.judge(Action{Kind: MoveReservation, Subject: m.from.ID, Slots: m.to.Slots, Facts: Facts{
			From: m.from.Slots, To: m.to.Slots, Cost: c.totalCost(m.from.Slots), CostAfter: c.totalCost(m.to.Slots),
			For: b.ID,
		}})
	}
	return clearing.slots
}

// clearing is the search of makeRoom.
type clearing struct {
	*computation
	window calendar.Interval
	shape  capacity.Shape
	tried  int
	slots  []int
	moves  []relocation
}

type relocation struct{ from, to calendar.Booking }

// clearSlot adds the slot if it is free, or can be made so.
func (c *clearing) clearSlot(slot int) {
	gpus := c.shape.On(len(c.slots))
	if c.places.Fits(slot, gpus, c.window) {
		c.slots = append(c.slots, slot)
		return
	}
	if c.tried++; c.tried > attempts {
		return
	}
	done := len(c.moves)
	for _, b := range c.places.On(slot, c.window) {
		if !c.isMovable(b) || !c.moveOff(b, slot) {
			break
		}
		if c.places.Fits(slot, gpus, c.window) {
			c.slots = append(c.slots, slot)
			return
		}
	}
	c.undoTo(done)
}

// isMovable reports whether a booking is a promise that nothing was done for yet,
// and that was not moved in this run. Whatever else is in the calendar is near, or
// has begun.
func (c *clearing) isMovable(b calendar.Booking) bool {
	if c.nearIDs == nil {
		c.nearIDs = make(map[string]bool, len(c.near))
		for _, r := range c.near {
			c.nearIDs[r.ID] = true
		}
	}
	return b.Interval.Start.Add(-c.lead).After(c.now) && !c.nearIDs[b.ID] && !c.shifted[b.ID] &&
		!slices.ContainsFunc(c.moves, func(m relocation) bool { return m.from.ID == b.ID })
}

// distantRank ranks slots by cost for what is far off: it leaves what is ready, or will
// be, to those whose time has come.
var distantRank = []int{costMissing: 0, costStuck: 1, costComing: 2, costReady: 3}

// moveOff moves one slot of a booking to one that is not being cleared.
func (c *clearing) moveOff(b calendar.Booking, slot int) bool {
	found, ok := c.places.Find(capacity.Shape{Nodes: 1, PerNode: b.On(slot)}, b.Interval, func(other int) int {
		if other == slot || slices.Contains(b.Slots, other) || slices.Contains(c.slots, other) {
			return -1
		}
		return distantRank[c.costOf(other)]
	})
	if !ok {
		return false
	}
	to := b
	to.Slots = slices.Clone(b.Slots)
	to.Slots[slices.Index(to.Slots, slot)] = found[0]
	c.places.Remove(b.ID)
	c.places.Force(to)
	c.moves = append(c.moves, relocation{b, to})
	return true
}

func (c *clearing) undoAll() { c.undoTo(0) }

func (c *clearing) undoTo(n int) {
	for _, m := range slices.Backward(c.moves[n:]) {
		c.places.Remove(m.to.ID)
		c.places.Force(m.from)
	}
	c.moves = c.moves[:n]
}
