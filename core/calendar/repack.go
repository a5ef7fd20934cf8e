package calendar

import (
	"cmp"
	"slices"

	"github.com/forewarm/forewarm/core/capacity"
)

// A Repack tries to clear so many slots at most, each in so many ways.
const (
	repackSlots = 256
	repackTries = 8
)

// Move puts a booking on other slots: from all of From to all of To.
type Move struct {
	ID       string
	From, To []int
}

// Repack looks for a place for the shape during iv by moving bookings of movable
// to other slots, without breaking any. It returns the place and the moves that
// make it, which are good when they are applied in their order with
// (*Slots).Move; a booking may be in it more than once. The calendar is not
// changed.
//
// No move is tried first. Then slots are cleared one by one, those first that
// need the fewest bookings moved, each move to the best slot there is for it among
// those of tiers. It is greedy, tries at most 256 slots and each in 8 ways: a place
// that takes chains of moves may be missed, one that takes a single move of one of
// them is not. The slots of full nodes are cleared before that of a smaller last
// one, which may be missed if those moves take its room.
func (s *Slots) Repack(movable []string, shape capacity.Shape, iv Interval,
	tiers Tiers) (slots []int, moves []Move, ok bool) {
	if slots, ok = s.FindInto(nil, shape, iv, tiers); ok || !s.canEverHold(shape, iv) {
		return slots, nil, ok
	}
	r := newRepacking(s, movable, iv, tiers)
	cleared := r.clearFor(shape.PerNode, shape.Full()) && (shape.Short == 0 || r.clearFor(shape.Least(), shape.Nodes))
	r.releaseHeld()
	if cleared {
		slots, ok = s.FindInto(nil, shape, iv, tiers)
	}
	r.undoMoves(0)
	if !ok {
		return nil, nil, false
	}
	return slots, r.moves, true
}

// repacking is one search. It works on the calendar itself and takes everything
// back.
type repacking struct {
	*Slots
	movable map[string]bool
	tiers   Tiers
	allowed SlotSet
	probe   Booking // of the shape, so many GPUs as are cleared for now
	held    []held  // the slots that are free or cleared
	moves   []Move
}

// held is so many GPUs of a slot, kept for the shape.
type held struct {
	slot, gpus int
}

func newRepacking(s *Slots, movable []string, iv Interval, tiers Tiers) *repacking {
	r := &repacking{Slots: s, movable: make(map[string]bool, len(movable)), tiers: tiers,
		allowed: tiers.allowedBelow(len(s.lines)),
		probe:   Booking{ID: "\x00repack", Interval: iv}}
	for _, id := range movable {
		r.movable[id] = true
	}
	return r
}

// holdSlot keeps a slot for the shape, so that nothing is moved there.
func (r *repacking) holdSlot(slot int) {
	r.held = append(r.held, held{slot, r.probe.GPUs})
	r.addToSlot(slot, r.probe, r.probe.GPUs)
}

func (r *repacking) isHeld(slot int) bool {
	return slices.ContainsFunc(r.held, func(h held) bool { return h.slot == slot })
}

// clearFor holds slots with so many GPUs, those that have the room already first,
// until n are held, and reports whether there are.
func (r *repacking) clearFor(gpus, n int) bool {
	r.probe.GPUs = gpus
	r.holdFree()
	if len(r.held) >= n {
		return true
	}
	for _, slot := range r.candidateSlots() {
		if len(r.held) < n {
			r.clearSlot(slot)
		}
	}
	return len(r.held) == n
}

// holdFree holds the slots that have room already.
func (r *repacking) holdFree() {
	for slot := range r.allowed.All() {
		if !r.isHeld(slot) && r.Fits(slot, r.probe.GPUs, r.probe.Interval) {
			r.holdSlot(slot)
		}
	}
}

// releaseHeld gives up what is held.
func (r *repacking) releaseHeld() {
	for _, h := range r.held {
		r.removeFromSlot(h.slot, r.probe, h.gpus)
	}
	r.held = nil
}

// candidateSlots returns the slots worth clearing, those with the fewest blockers
// first.
func (r *repacking) candidateSlots() []int {
	var found []int
	blockers := map[int]int{}
	for slot := range r.allowed.All() {
		if r.isHeld(slot) {
			continue
		}
		if n := len(r.blockersOn(slot, nil)); n > 0 {
			found = append(found, slot)
			blockers[slot] = n
		}
	}
	slices.SortStableFunc(found, func(a, b int) int { return cmp.Compare(blockers[a], blockers[b]) })
	return found[:min(len(found), repackSlots)]
}

// blockersOn returns bookings, none of those that stay, without which the slot has
// room and of which none can be spared; or none, when no such move makes any.
func (r *repacking) blockersOn(slot int, stays map[string]bool) []string {
	lo, hi := r.occupiedSpan(r.probe.Interval)
	trial := line{steps: slices.Clone(r.lines[slot].steps)}
	all := r.movableOn(slot, stays)
	for _, b := range all {
		start, end := r.occupiedSpan(b.Interval)
		trial.addUse(start, end, -b.On(slot))
	}
	if trial.peak(lo, hi)+r.probe.GPUs > r.perSlot {
		return nil
	}
	var ids []string
	for _, b := range all {
		start, end := r.occupiedSpan(b.Interval)
		if trial.addUse(start, end, b.On(slot)); trial.peak(lo, hi)+r.probe.GPUs > r.perSlot {
			trial.addUse(start, end, -b.On(slot))
			ids = append(ids, b.ID)
		}
	}
	return ids
}

// movableOn returns the bookings in the way on a slot that may be moved, the
// smallest first: if those stay, few need to move.
func (r *repacking) movableOn(slot int, stays map[string]bool) []Booking {
	lo, hi := r.occupiedSpan(r.probe.Interval)
	l := &r.lines[slot]
	var found []Booking
	for i := l.firstEndingAfter(shiftInstant(lo, -r.margin)); i < len(l.entries) && l.entries[i].start < hi; i++ {
		b, ok := r.bookings[l.entries[i].id]
		if ok && r.movable[b.ID] && !stays[b.ID] && shiftInstant(l.entries[i].end, r.margin) > lo &&
			areDistinct(b.Slots) {
			found = append(found, b)
		}
	}
	slices.SortStableFunc(found, func(a, b Booking) int { return cmp.Compare(a.On(slot), b.On(slot)) })
	return found
}

// areDistinct reports whether no slot is named twice, as only Force allows.
func areDistinct(slots []int) bool {
	for i, slot := range slots {
		if slices.Contains(slots[:i], slot) {
			return false
		}
	}
	return true
}

// clearSlot moves a slot's blockers away and holds it, or changes nothing. When one of
// them finds no other place, it tries again with that one staying.
func (r *repacking) clearSlot(slot int) bool {
	stays := map[string]bool{}
	for range repackTries {
		stuck, ok := r.evictBlockers(slot, stays)
		if ok {
			r.holdSlot(slot)
			return true
		}
		if stuck == "" {
			return false
		}
		stays[stuck] = true
	}
	return false
}

// evictBlockers moves blockers away, or changes nothing and names the one that found no
// place, if there were any.
func (r *repacking) evictBlockers(slot int, stays map[string]bool) (stuck string, ok bool) {
	before := len(r.moves)
	blockers := r.blockersOn(slot, stays)
	for _, id := range blockers {
		b := r.bookings[id]
		to, found := r.findElsewhere(b, slot)
		if !found {
			r.undoMoves(before)
			r.moves = r.moves[:before]
			return id, false
		}
		moved := slices.Clone(b.Slots)
		moved[slices.Index(moved, slot)] = to
		r.moves = append(r.moves, Move{ID: id, From: b.Slots, To: moved})
		r.moveBooking(id, moved)
	}
	return "", len(blockers) > 0
}

// findElsewhere finds another slot, none that it is on, for what a booking has on one.
func (r *repacking) findElsewhere(b Booking, slot int) (int, bool) {
	tiers := r.tiers
	if tiers == nil {
		tiers = Tiers{r.allowed}
	}
	others := make(Tiers, len(tiers))
	for i := range tiers {
		others[i] = tiers[i].Clone()
		for _, own := range b.Slots {
			others[i].Remove(own)
		}
	}
	to, ok := r.FindInto(nil, capacity.Shape{Nodes: 1, PerNode: b.On(slot)}, b.Interval, others)
	if !ok {
		return 0, false
	}
	return to[0], true
}

// undoMoves takes back the moves from n on, the last first.
func (r *repacking) undoMoves(n int) {
	for _, m := range slices.Backward(r.moves[n:]) {
		r.moveBooking(m.ID, m.From)
	}
}

func (r *repacking) moveBooking(id string, slots []int) {
	b := r.bookings[id]
	b.Slots = slots
	r.Force(b)
}
