package main

import (
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/core/reservation"
)

const (
	nodes, perNode = 1250, 8
	horizon        = 30 * 24 * time.Hour
	ondemand       = 400 // allocations without a reservation
	idle           = 200 // ready nodes that nobody uses
)

var now = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

// pool is a busy pool of 1,250 nodes: reservations spread over 30 days, of which
// those that have begun are claimed, ready or late, work that came without, nodes
// in every state, and a waitlist.
type pool struct {
	plan.Snapshot
	chance *rand.Rand
	slots  *calendar.Slots
	states map[int]node.State // that a slot's node is to be in
	result plan.Result
}

var shapes = []capacity.Shape{
	{Nodes: 1, PerNode: 1}, {Nodes: 1, PerNode: 2}, {Nodes: 1, PerNode: 4}, {Nodes: 1, PerNode: 8},
	{Nodes: 2, PerNode: 8}, {Nodes: 4, PerNode: 8},
}

func buildPool(reservations int, seed uint64) (*pool, error) {
	p := &pool{chance: rand.New(rand.NewPCG(seed, uint64(reservations))), slots: calendar.NewSlots(nodes, perNode),
		states: map[int]node.State{}}
	p.Pool = capacity.Pool{ID: "pool", PerNode: perNode, MaxNodes: nodes, MinNodes: 10, Price: 20 * money.USD,
		Timers: capacity.Timers{WarmHold: 20 * time.Minute, IdleRelease: 4 * time.Hour}}
	p.learnPast()
	for i := range ondemand {
		p.addAllocation(i)
	}
	for i := range reservations {
		if err := p.addReservation(i); err != nil {
			return nil, err
		}
	}
	if err := p.makeNodes(); err != nil {
		return nil, err
	}
	p.result = p.withoutCalendar()
	return p, p.checkPool()
}

// learnPast gives the pool a past: sixty boots and four weeks of demand.
func (p *pool) learnPast() {
	p.Boot = learned.BootTimes{Prior50: 4 * time.Minute, Prior95: 8 * time.Minute}
	for range 64 {
		p.Boot = p.Boot.Learn(3*time.Minute + time.Duration(p.chance.IntN(240))*time.Second)
	}
	at := now.Add(-28 * 24 * time.Hour)
	p.Arrivals = p.Arrivals.Observe(nil, at)
	for at.Before(now) {
		at = at.Add(time.Hour)
		p.Arrivals = p.Arrivals.Observe([]learned.Start{{At: at.Add(-time.Minute), Nodes: float64(p.chance.IntN(8))}},
			at)
	}
}

func (p *pool) drawLength() time.Duration {
	return time.Duration(15+p.chance.IntN(8*60)) * time.Minute
}

func (p *pool) addAllocation(i int) {
	a := allocation.Allocation{ID: fmt.Sprintf("a%06d", i), OrganizationID: p.drawOrganization(),
		Shape: shapes[p.chance.IntN(len(shapes))], Lease: p.drawLength()}
	a.Window = calendar.Interval{Start: now.Add(-time.Minute), End: now.Add(a.Lease)}
	slots, ok := p.slots.Find(a.Shape, a.Window, nil)
	if !ok {
		return
	}
	a.Slots = slots
	p.addHolder(allocation.New(a, now.Add(-time.Minute)), p.chance.IntN(20) > 0)
}

// addHolder adds an allocation, with its GPUs if it is active.
func (p *pool) addHolder(a allocation.Allocation, active bool) {
	p.slots.Force(a.Booking())
	for _, slot := range a.Slots {
		if active {
			p.states[slot] = node.Ready
			for g := range a.Shape.PerNode {
				a.Devices = append(a.Devices, allocation.Held{NodeID: nodeID(slot),
					UUID: fmt.Sprintf("%s-%s-%d", a.ID, nodeID(slot), g)})
			}
		} else if p.states[slot] == "" {
			p.states[slot] = node.Booting
		}
	}
	if active {
		a, _ = a.Apply(allocation.Activate, "warm", now.Add(-time.Minute))
	}
	p.Allocations = append(p.Allocations, a)
}

func (p *pool) drawOrganization() string { return fmt.Sprintf("org%02d", p.chance.IntN(40)) }

// addReservation books a window that begins between four hours ago and the horizon.
func (p *pool) addReservation(i int) error {
	start := now.Add(-4*time.Hour + time.Duration(p.chance.Int64N(int64(horizon+4*time.Hour)))).Truncate(time.Minute)
	r := reservation.Reservation{
		ID: fmt.Sprintf("r%06d", i), OrganizationID: p.drawOrganization(), Shape: shapes[p.chance.IntN(len(shapes))],
		Class: reservation.Guaranteed, Origin: reservation.FromPerson,
		Window: calendar.Interval{Start: start, End: start.Add(p.drawLength())},
	}
	if p.chance.IntN(3) == 0 {
		r.Class, r.Origin = reservation.Speculative, reservation.FromAgent
	}
	if !r.Window.End.After(now) {
		r.Window.End = now.Add(p.drawLength())
	}
	slots, ok := p.slots.Find(r.Shape, r.Window, nil)
	waits := p.chance.IntN(100) == 0
	if !ok || waits {
		return p.addInState(r, reservation.Waitlisted)
	}
	r.Slots = slots
	return p.placeReservation(r)
}

// placeReservation gives a reservation the state that its time and its nodes allow: of those
// that have begun, most are claimed, and are allocations now.
func (p *pool) placeReservation(r reservation.Reservation) error {
	if r.Window.Start.After(now.Add(plan.Lead(p.Boot, plan.Policy{}))) {
		return p.addInState(r, reservation.Booked)
	}
	switch p.chance.IntN(6) {
	case 0:
		return p.warmReservation(r, node.Booting)
	case 1:
		return p.warmReservation(r, node.Ready)
	case 2:
		return p.addInState(r, reservation.Booked) // its lead time has just come
	default:
		p.addHolder(allocation.New(allocation.Allocation{
			ID: "a-" + r.ID, OrganizationID: r.OrganizationID, Shape: r.Shape, Slots: r.Slots, Window: r.Window,
			Lease: r.Window.End.Sub(now),
		}, now.Add(-time.Minute)), true)
		return nil
	}
}

func (p *pool) warmReservation(r reservation.Reservation, nodes node.State) error {
	events := []reservation.Event{reservation.Warm}
	for _, slot := range r.Slots {
		if p.states[slot] == "" {
			p.states[slot] = nodes
		}
	}
	if !slices.ContainsFunc(r.Slots, func(slot int) bool { return p.states[slot] != node.Ready }) {
		events = append(events, reservation.BecomeReady)
	}
	return p.addInState(r, reservation.Booked, events...)
}

func (p *pool) addInState(r reservation.Reservation, s reservation.State, events ...reservation.Event) error {
	r, err := reservation.New(r, s, now.Add(-5*time.Hour))
	for _, e := range events {
		if err == nil {
			r, err = r.Apply(e, "bench", now.Add(-time.Minute))
		}
	}
	if err != nil {
		return fmt.Errorf("making reservation %s: %w", r.ID, err)
	}
	if r.Placed() {
		p.slots.Force(r.Booking())
	}
	p.Reservations = append(p.Reservations, r)
	return nil
}

func nodeID(slot int) string { return fmt.Sprintf("n%04d", slot) }

var ways = map[node.State][]node.Event{
	node.Booting: {node.Provision, node.Boot}, node.Ready: {node.Provision, node.Boot, node.BecomeReady},
	node.Draining:       {node.Provision, node.Boot, node.BecomeReady, node.Drain},
	node.Lost:           {node.Provision, node.Boot, node.BecomeReady, node.Lose},
	node.Deprovisioning: {node.Provision, node.Boot, node.BecomeReady, node.Drain, node.Retire},
}

// makeNodes makes the nodes that are used, idle ones, and a few on their way out.
func (p *pool) makeNodes() error {
	for i := range idle + 30 {
		slot := p.chance.IntN(nodes)
		if p.states[slot] != "" {
			continue
		}
		p.states[slot] = node.Ready
		if i >= idle {
			p.states[slot] = []node.State{node.Draining, node.Deprovisioning, node.Lost}[i%3]
		}
	}
	for _, slot := range slices.Sorted(maps.Keys(p.states)) {
		n := node.New(nodeID(slot), p.Pool.ID, slot, 1, now.Add(-time.Duration(p.chance.IntN(180))*time.Second))
		for _, e := range ways[p.states[slot]] {
			var err error
			if n, err = n.Apply(e, "bench", now.Add(-time.Duration(p.chance.IntN(120))*time.Minute)); err != nil {
				return fmt.Errorf("making node %s: %w", n.ID, err)
			}
		}
		p.Nodes = append(p.Nodes, n)
	}
	return nil
}

func (p *pool) withoutCalendar() plan.Result {
	p.Slots = nil
	return plan.Compute(p.Snapshot, plan.Policy{}, now)
}

func (p *pool) withCalendar() plan.Result {
	p.Slots = p.slots
	return plan.Compute(p.Snapshot, plan.Policy{}, now)
}

// checkPool compares both ways, twice: the second run sees what the first left of the
// calendar.
func (p *pool) checkPool() error {
	for range 2 {
		got := p.withCalendar()
		if len(got.Actions) != len(p.result.Actions) || !got.Next.Equal(p.result.Next) {
			return fmt.Errorf("%d actions with a calendar at hand, %d without", len(got.Actions), len(p.result.Actions))
		}
		for i, a := range got.Actions {
			b := p.result.Actions[i]
			if a.Kind != b.Kind || a.Subject != b.Subject || a.Reason != b.Reason || !slices.Equal(a.Slots, b.Slots) {
				return fmt.Errorf("action %d: %s of %s with a calendar at hand, %s of %s without", i, a.Kind, a.Subject,
					b.Kind, b.Subject)
			}
		}
	}
	return nil
}

func (p *pool) printPool(out io.Writer) {
	counts := map[string]int{}
	for _, r := range p.Reservations {
		counts["reservations "+string(r.State())]++
	}
	for _, a := range p.Allocations {
		counts["allocations "+string(a.State())]++
	}
	for _, n := range p.Nodes {
		counts["nodes "+string(n.State())]++
	}
	for _, a := range p.result.Actions {
		counts["actions "+string(a.Kind)]++
	}
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(out, "%-34s %6d\n", key, counts[key])
	}
}
