package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/reservation"
)

// Outlook is a pool's plan at one moment, to be asked about one thing at a time:
// what stands in its way, how long that lasts, what comes next. It is the planner's
// own computation, so that nothing is said that the planner does not do.
type Outlook struct{ c *computation }

// Foresee plans the pool as Compute does, on a calendar of its own.
func Foresee(s Snapshot, p Policy, now time.Time) *Outlook {
	s.Slots = nil
	c := newComputation(s, p.WithDefaults(), now)
	c.planPool()
	return &Outlook{c}
}

// Codes of what stands in the way besides what keeps a node from being asked for.
const (
	LacksNode    = "node_missing" // the planner asks for it now
	LacksBoot    = "node_booting"
	LacksRemoval = "node_leaving"   // the slot's node must be gone before another one can be asked for
	LacksSlot    = "slot_missing"   // the pool no longer has it
	LacksDevices = "devices_held"   // a lease that was to be over is not
	LacksPrewarm = "prewarm_paused" // nothing speculative is made ready
)

// Obstacle is one thing that stands in the way on one slot.
type Obstacle struct {
	Code  string
	Slot  int
	Node  *node.Node // of the slot, if it has one
	Until time.Time  // when it clears at the latest if nothing else happens; zero where only an estimate is known
}

// Obstacles returns all that an allocation, a reservation or a node that waits for
// nodes still lacks, in the order of its slots.
func (o *Outlook) Obstacles(id string) []Obstacle {
	if a, ok := o.findAllocation(id); ok && a.State() == allocation.Pending {
		return obstaclesOn(o.c, o.slotsOf(id, a.Slots), a.Shape)
	}
	if r, ok := o.findReservation(id); ok {
		return o.ofReservation(r)
	}
	if n, ok := o.findNode(id); ok && n.Coming() {
		return obstaclesOn(o.c, []int{n.Slot}, capacity.Shape{})
	}
	return nil
}

func (o *Outlook) ofReservation(r *reservation.Reservation) []Obstacle {
	switch slots := o.slotsOf(r.ID, r.Slots); {
	case r.State() == reservation.Warming && o.c.isPaused(r):
		return []Obstacle{{Code: LacksPrewarm, Slot: -1, Until: pausedUntil(o.c, r)}}
	case r.State() == reservation.Warming:
		return obstaclesOn(o.c, slots, r.Shape)
	case r.State() == reservation.Booked:
		// Its nodes are not asked for yet, but where the slot is gone they never could be.
		return slices.DeleteFunc(obstaclesOn(o.c, slots, capacity.Shape{}),
			func(x Obstacle) bool { return x.Code != LacksSlot })
	default:
		return nil
	}
}

// Homeless lists the reservations and waiting allocations that have no place any
// more, because the pool no longer has their slots, nor others for them.
func (o *Outlook) Homeless() []string {
	var ids []string
	for i := range o.c.Reservations {
		if r := &o.c.Reservations[i]; r.Placed() && o.c.losesSlot(o.slotsOf(r.ID, r.Slots)) {
			ids = append(ids, r.ID)
		}
	}
	for _, a := range o.c.byAge {
		if a.State() == allocation.Pending && o.c.losesSlot(o.slotsOf(a.ID, a.Slots)) {
			ids = append(ids, a.ID)
		}
	}
	return ids
}

func obstaclesOn(c *computation, slots []int, shape capacity.Shape) []Obstacle {
	var all []Obstacle
	for i, slot := range slots {
		n := c.bySlot[slot]
		lacks := Obstacle{Slot: slot, Node: n}
		switch c.slotReadiness(slot) {
		case ready:
			if c.inUse[n.ID]+shape.On(i) <= c.Pool.PerNode {
				continue
			}
			p, _ := heldUntil(c, n, "")
			lacks.Code, lacks.Until = LacksDevices, c.now.Add(p.Room)
		case coming:
			lacks.Code = LacksBoot
		case missing:
			all = append(all, whyNotRequested(c, slot)...)
			continue
		default:
			if lacks.Code = LacksRemoval; c.isBeyond(slot) {
				lacks.Code = LacksSlot
			}
		}
		all = append(all, lacks)
	}
	return all
}

// whyNotRequested is why a slot that needs a node has none.
func whyNotRequested(c *computation, slot int) []Obstacle {
	i := slices.IndexFunc(c.withheld, func(w Withheld) bool { return w.Slot == slot })
	if at, asked := c.requestTimes[slot]; i < 0 && asked {
		return []Obstacle{{Code: LacksNode, Slot: slot, Until: at}}
	} else if i < 0 {
		return nil
	}
	var all []Obstacle
	for _, code := range c.withheld[i].Codes {
		lacks := Obstacle{Code: code, Slot: slot, Until: c.withheld[i].Until}
		if code == HeldTrial || code == HeldUnfit {
			lacks.Until = time.Time{}
		}
		all = append(all, lacks)
	}
	return all
}

// Codes of what comes next.
const (
	StepWarm    = "warm"     // warm-up begins
	StepStart   = "start"    // its window begins
	StepNoShow  = "no_show"  // it ends if nobody has claimed it; not before this while it is not ready
	StepEnd     = "end"      // its window is over
	StepGivesUp = "gives_up" // it has waited in vain
	StepLease   = "lease_end"
	StepInUse   = "in_use_until" // Subject uses the node now, and its lease ends then
	StepAwaited = "awaited"      // Subject waits for the node, until then at most
	StepNeeded  = "needed"       // Subject is booked on the node from then on
	StepReclaim = "idle_reclaim" // it is ended unless its GPUs do something before
	StepIdle    = "idle_release" // the node is removed at the latest
)

// Step is something that happens at a time unless somebody asks for something, or
// something fails, before.
type Step struct {
	Code    string
	At      time.Time
	Subject string
}

// Next returns what comes next for an allocation, a reservation or a node, in the
// order of time.
func (o *Outlook) Next(id string) []Step {
	var steps []Step
	if a, ok := o.findAllocation(id); ok {
		steps = o.nextOfAllocation(a)
	} else if r, ok := o.findReservation(id); ok {
		steps = o.nextOfReservation(r)
	} else if n, ok := o.findNode(id); ok {
		steps = o.nextOfNode(n)
	}
	steps = slices.DeleteFunc(steps, func(s Step) bool { return !s.At.After(o.c.now) })
	slices.SortStableFunc(steps, func(a, b Step) int { return a.At.Compare(b.At) })
	return steps
}

func (o *Outlook) nextOfAllocation(a *allocation.Allocation) []Step {
	switch a.State() {
	case allocation.Pending:
		return []Step{{Code: StepGivesUp, At: a.Window.End}}
	case allocation.Active:
		steps := []Step{{Code: StepLease, At: a.LeaseUntil}}
		if idle, known := o.c.Idle[a.ID]; known {
			steps = append(steps, Step{Code: StepReclaim, At: idle.ReclaimAt(o.c.Pool.Timers, a.IdleWarnedAt)})
		}
		return steps
	default:
		return nil
	}
}

func (o *Outlook) nextOfReservation(r *reservation.Reservation) []Step {
	c := o.c
	steps := []Step{{Code: StepStart, At: r.Window.Start}, {Code: StepEnd, At: r.Window.End}}
	hold := calendar.Later(r.Window.Start, r.ReadyAt).Add(c.Pool.Timers.WarmHold)
	switch r.State() {
	case reservation.Waitlisted:
		return []Step{{Code: StepGivesUp, At: r.Window.End}}
	case reservation.Booked:
		if !c.isPaused(r) && !c.losesSlot(o.slotsOf(r.ID, r.Slots)) {
			steps = append(steps, Step{Code: StepWarm, At: r.Window.Start.Add(-c.lead)})
		}
	case reservation.Ready, reservation.Warming:
	default:
		return nil
	}
	if mayBeNoShow(r) && hold.Before(r.Window.End) {
		steps = append(steps, Step{Code: StepNoShow, At: hold})
	}
	return steps
}

func (o *Outlook) nextOfNode(n *node.Node) []Step {
	c := o.c
	var steps []Step
	serves := n.Coming() || n.State() == node.Ready || n.Kept() // or else another node serves who comes later
	for _, a := range c.byAge {
		if slices.Contains(o.slotsOf(a.ID, a.Slots), n.Slot) &&
			(a.State() != allocation.Pending || !c.isBeyond(n.Slot)) {
			step := Step{Code: StepInUse, At: a.LeaseUntil, Subject: a.ID}
			if a.State() == allocation.Pending {
				step.Code, step.At = StepAwaited, a.Window.End
			}
			steps = append(steps, step)
		}
	}
	for i := range c.Reservations {
		if r := &c.Reservations[i]; serves && !c.isBeyond(n.Slot) && r.Placed() &&
			slices.Contains(o.slotsOf(r.ID, r.Slots), n.Slot) {
			steps = append(steps, Step{Code: StepNeeded, At: r.Window.Start, Subject: r.ID})
		}
	}
	if at, ok := releasedAt(c, n); ok {
		steps = append(steps, Step{Code: StepIdle, At: at})
	}
	return steps
}

// releasedAt is when an idle node is removed at the latest: those that were idle first,
// as long as more are left than the pool keeps.
func releasedAt(c *computation, n *node.Node) (time.Time, bool) {
	if !slices.Contains(c.idleNodes, n) {
		return time.Time{}, false
	}
	idle := slices.Clone(c.idleNodes)
	slices.SortStableFunc(idle,
		func(a, b *node.Node) int { return cmp.Or(a.IdleSince.Compare(b.IdleSince), cmp.Compare(a.ID, b.ID)) })
	if slices.Index(idle, n) >= min(c.usableCount-c.Pool.MinNodes, c.policy.removalCap(len(c.Nodes))) {
		return time.Time{}, false
	}
	return n.IdleSince.Add(c.Pool.Timers.IdleRelease), true
}

// slotsOf are where the plan has put a booking.
func (o *Outlook) slotsOf(id string, stored []int) []int {
	if b, ok := o.c.places.Booking(id); ok {
		return b.Slots
	}
	return stored
}

func (o *Outlook) findAllocation(id string) (*allocation.Allocation, bool) {
	i := slices.IndexFunc(o.c.byAge, func(a *allocation.Allocation) bool { return a.ID == id })
	if i < 0 {
		return nil, false
	}
	return o.c.byAge[i], true
}

func (o *Outlook) findReservation(id string) (*reservation.Reservation, bool) {
	i := slices.IndexFunc(o.c.Reservations, func(r reservation.Reservation) bool { return r.ID == id })
	if i < 0 {
		return nil, false
	}
	return &o.c.Reservations[i], true
}

func (o *Outlook) findNode(id string) (*node.Node, bool) {
	i := slices.IndexFunc(o.c.Nodes, func(n node.Node) bool { return n.ID == id })
	if i < 0 {
		return nil, false
	}
	return &o.c.Nodes[i], true
}
