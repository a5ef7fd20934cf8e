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
	if slots, ok = s.FindInto(nil, shape, iv, tiers); ok || !s.askable(shape, iv) {
		return slots, nil, ok
	}
	r := newRepacking(s, movable, iv, tiers)
	cleared := r.clearFor(shape.PerNode, shape.Full()) && (shape.Short == 0 || r.clearFor(shape.Least(), shape.Nodes))
	r.release()
	if cleared {
		slots, ok = s.FindInto(nil, shape, iv, tiers)
	}
	r.undo(0)
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
		allowed: tiers.allowed(len(s.lines)),
		probe:   Booking{ID: "\x00repack", Interval: iv}}
	for _, id := range movable {
		r.movable[id] = true
	}
	return r
}

// hold keeps a slot for the shape, so that nothing is moved there.
func (r *repacking) hold(slot int) {
	r.held = append(r.held, held{slot, r.probe.GPUs})
	r.put(slot, r.probe, r.probe.GPUs)
}

func (r *repacking) holds(slot int) bool {
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
	for _, slot := range r.candidates() {
		if len(r.held) < n {
			r.clear(slot)
		}
	}
	return len(r.held) == n
}

// holdFree holds the slots that have room already.
func (r *repacking) holdFree() {
	for slot := range r.allowed.All() {
		if !r.holds(slot) && r.Fits(slot, r.probe.GPUs, r.probe.Interval) {
			r.hold(slot)
		}
	}
}

// release gives up what is held.
func (r *repacking) release() {
	for _, h := range r.held {
		r.take(h.slot, r.probe, h.gpus)
	}
	r.held = nil
}

// candidates returns the slots worth clearing, those with the fewest blockers
// first.
func (r *repacking) candidates() []int {
	var found []int
	blockers := map[int]int{}
	for slot := range r.allowed.All() {
		if r.holds(slot) {
			continue
		}
		if n := len(r.blockers(slot, nil)); n > 0 {
			found = append(found, slot)
			blockers[slot] = n
		}
	}
	slices.SortStableFunc(found, func(a, b int) int { return cmp.Compare(blockers[a], blockers[b]) })
	return found[:min(len(found), repackSlots)]
}

// blockers returns bookings, none of those that stay, without which the slot has
// room and of which none can be spared; or none, when no such move makes any.
func (r *repacking) blockers(slot int, stays map[string]bool) []string {
	lo, hi := r.occupied(r.probe.Interval)
	trial := line{steps: slices.Clone(r.lines[slot].steps)}
	all := r.movableOn(slot, stays)
	for _, b := range all {
		start, end := r.occupied(b.Interval)
		trial.add(start, end, -b.On(slot))
	}
	if trial.peak(lo, hi)+r.probe.GPUs > r.perSlot {
		return nil
	}
	var ids []string
	for _, b := range all {
		start, end := r.occupied(b.Interval)
		if trial.add(start, end, b.On(slot)); trial.peak(lo, hi)+r.probe.GPUs > r.perSlot {
			trial.add(start, end, -b.On(slot))
			ids = append(ids, b.ID)
		}
	}
	return ids
}

// movableOn returns the bookings in the way on a slot that may be moved, the
// smallest first: if those stay, few need to move.
func (r *repacking) movableOn(slot int, stays map[string]bool) []Booking {
	lo, hi := r.occupied(r.probe.Interval)
	l := &r.lines[slot]
	var found []Booking
	for i := l.ending(after(lo, -r.margin)); i < len(l.entries) && l.entries[i].start < hi; i++ {
		b, ok := r.bookings[l.entries[i].id]
		if ok && r.movable[b.ID] && !stays[b.ID] && after(l.entries[i].end, r.margin) > lo && distinct(b.Slots) {
			found = append(found, b)
		}
	}
	slices.SortStableFunc(found, func(a, b Booking) int { return cmp.Compare(a.On(slot), b.On(slot)) })
	return found
}

// distinct reports whether no slot is named twice, as only Force allows.
func distinct(slots []int) bool {
	for i, slot := range slots {
		if slices.Contains(slots[:i], slot) {
			return false
		}
	}
	return true
}

// clear moves a slot's blockers away and holds it, or changes nothing. When one of
// them finds no other place, it tries again with that one staying.
func (r *repacking) clear(slot int) bool {
	stays := map[string]bool{}
	for range repackTries {
		stuck, ok := r.evict(slot, stays)
		if ok {
			r.hold(slot)
			return true
		}
		if stuck == "" {
			return false
		}
		stays[stuck] = true
	}
	return false
}

// evict moves blockers away, or changes nothing and names the one that found no
// place, if there were any.
func (r *repacking) evict(slot int, stays map[string]bool) (stuck string, ok bool) {
	before := len(r.moves)
	blockers := r.blockers(slot, stays)
	for _, id := range blockers {
		b := r.bookings[id]
		to, found := r.elsewhere(b, slot)
		if !found {
			r.undo(before)
			r.moves = r.moves[:before]
			return id, false
		}
		moved := slices.Clone(b.Slots)
		moved[slices.Index(moved, slot)] = to
		r.moves = append(r.moves, Move{ID: id, From: b.Slots, To: moved})
		r.rebook(id, moved)
	}
	return "", len(blockers) > 0
}

// elsewhere finds another slot, none that it is on, for what a booking has on one.
func (r *repacking) elsewhere(b Booking, slot int) (int, bool) {
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

// undo takes back the moves from n on, the last first.
func (r *repacking) undo(n int) {
	for _, m := range slices.Backward(r.moves[n:]) {
		r.rebook(m.ID, m.From)
	}
}

func (r *repacking) rebook(id string, slots []int) {
	b := r.bookings[id]
	b.Slots = slots
	r.Force(b)
}
