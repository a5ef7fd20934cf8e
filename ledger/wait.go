package ledger

import (
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/gpu"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/core/reservation"
)

// Waits estimates how much longer things wait, on one snapshot. It reads each
// pool once. It is not safe for concurrent use.
type Waits struct {
	r     Reader
	pools map[string]*poolWaits
}

// poolWaits is a pool as those who wait in it see it.
type poolWaits struct {
	PoolState
	now    time.Time
	places *calendar.Slots // see calendar
}

// NewWaits returns estimates on what r reads.
func NewWaits(r Reader) *Waits { return &Waits{r: r, pools: map[string]*poolWaits{}} }

func (w *Waits) pool(id string) (*poolWaits, error) {
	if p, ok := w.pools[id]; ok {
		return p, nil
	}
	state, err := w.r.PoolState(id)
	if err != nil {
		return nil, fmt.Errorf("reading pool: %w", err)
	}
	p := &poolWaits{PoolState: state, now: w.r.Now()}
	p.Pool = p.Pool.asked(p.now)
	w.pools[id] = p
	return p, nil
}

// Allocation estimates when a pending allocation gets its GPUs; nil for one that
// does not wait.
func (w *Waits) Allocation(a allocation.Allocation) (*plan.Estimate, error) {
	if a.State() != allocation.Pending {
		return nil, nil
	}
	p, err := w.pool(a.PoolID)
	if err != nil {
		return nil, err
	}
	return estimate(p.nodes(a.Slots, a.Shape.PerNode, a.ID)), nil
}

// Reservation estimates when a reservation gets a place, or when its nodes are
// warm if it has one and its time to warm has come; nil for one that does not
// wait, or whose time is over before there is a place.
func (w *Waits) Reservation(r reservation.Reservation) (*plan.Estimate, error) {
	if r.State() != reservation.Waitlisted && r.State() != reservation.Warming {
		return nil, nil
	}
	p, err := w.pool(r.PoolID)
	if err != nil {
		return nil, err
	}
	if r.State() == reservation.Warming {
		return estimate(p.nodes(r.Slots, r.Shape.PerNode, "")), nil
	}
	facts, ok := p.room(r.Shape, r.Window)
	if !ok {
		return nil, nil
	}
	e := estimate(facts)
	soonest := r.Window.Start.Sub(p.now) // however early others leave
	e.P10, e.P50, e.P90 = max(e.P10, soonest), max(e.P50, soonest), max(e.P90, soonest)
	return e, nil
}

func estimate(f plan.WaitFacts) *plan.Estimate {
	e := plan.Wait(f)
	return &e
}

// nodes are the facts of a wait for the nodes on some slots, and for so many
// devices on each that are not in hands other than the holder's.
func (p *poolWaits) nodes(slots []int, gpus int, holder string) plan.WaitFacts {
	f := plan.WaitFacts{Boot: p.Pool.Boot, Blocked: max(0, p.Pool.BlockedUntil.Sub(p.now))}
	for _, slot := range slots {
		i := slices.IndexFunc(p.Nodes, func(n node.Node) bool { return n.Slot == slot })
		switch {
		case i < 0:
			f.Missing++
		case p.Nodes[i].Coming():
			f.Ages = append(f.Ages, p.now.Sub(p.Nodes[i].RequestedAt))
		case p.Nodes[i].State() != node.Ready:
			f.Missing++ // its node must go first, and another one boot
		default:
			p.held(&f, p.Nodes[i], gpus, holder)
		}
	}
	if f.Missing == 0 {
		f.Blocked = 0
	}
	return f
}

// held adds the leases that must end before so many devices of a node are free.
func (p *poolWaits) held(f *plan.WaitFacts, n node.Node, gpus int, holder string) {
	free := len(n.Devices)
	var leases []allocation.Allocation
	for _, a := range p.Allocations {
		on := 0
		for _, h := range a.Devices {
			if h.NodeID == n.ID && a.ID != holder {
				on++
			}
		}
		if free -= on; on > 0 {
			leases = append(leases, a)
		}
	}
	if free < gpus {
		p.hold(f, leases)
	}
}

func (p *poolWaits) hold(f *plan.WaitFacts, leases []allocation.Allocation) {
	for _, a := range leases {
		f.Holds = append(f.Holds, plan.Hold{Age: p.now.Sub(a.ActiveAt), Lease: a.LeaseUntil.Sub(a.ActiveAt)})
		f.Room = max(f.Room, a.LeaseUntil.Sub(p.now))
	}
}

// room are the facts of a wait for a place that lasts as long as the window:
// until the calendar has one, or the leases end that are in its way. It is
// false when the window is over by then.
func (p *poolWaits) room(shape gpu.Shape, window calendar.Interval) (plan.WaitFacts, bool) {
	from := window.From(p.now)
	start, slots, ok := p.calendar().Earliest(shape, from.Length(), from.Start, window.End)
	if !ok || !start.Before(window.End) {
		return plan.WaitFacts{}, false
	}
	f := p.nodes(slots, 0, "")
	f.Room = start.Sub(p.now)
	var leases []allocation.Allocation
	for _, a := range p.Allocations {
		if a.State() == allocation.Active && !a.Window.End.After(start) && slices.ContainsFunc(a.Slots, func(s int) bool { return slices.Contains(slots, s) }) {
			leases = append(leases, a)
		}
	}
	p.hold(&f, leases)
	return f, true
}

func (p *poolWaits) calendar() *calendar.Slots {
	if p.places != nil {
		return p.places
	}
	p.places = calendar.NewSlots(p.Pool.MaxNodes, p.Pool.PerNode)
	for _, r := range p.Reservations {
		if r.Placed() {
			p.places.Force(r.Booking())
		}
	}
	for _, a := range p.Allocations {
		p.places.Force(a.Booking())
	}
	return p.places
}
