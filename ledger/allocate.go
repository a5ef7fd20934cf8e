package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/gpu"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/internal/ids"
)

// DefaultLease is the lease of an allocation that names none.
const DefaultLease = time.Hour

// AllocateRequest asks for GPUs now.
type AllocateRequest struct {
	Pool   string // id or name; empty: any pool of Model
	Model  string
	GPUs   int
	Lease  time.Duration // counts from activation; zero means DefaultLease
	Name   string
	DryRun bool // decide, store nothing
}

func (r AllocateRequest) check() error {
	switch {
	case r.GPUs < 1 || r.GPUs > MaxGPUs:
		return &InvalidError{Field: "gpus", Rule: fmt.Sprintf("must be between 1 and %d", MaxGPUs)}
	case r.Lease < 0 || (r.Lease > 0 && r.Lease < time.Second):
		return &InvalidError{Field: "lease_seconds", Rule: "must be at least 1"}
	case r.Pool == "" && r.Model == "":
		return &InvalidError{Field: "pool", Rule: "or model must be given", Fix: "name a pool from GET /v1/pools"}
	}
	return nil
}

// Allocate gives GPUs to the actor's organization: warm ones at once, first
// those that its own speculative reservations hold, or a place and a boot to
// wait for. It answers *RefusedError with every blocker.
func (l *Ledger) Allocate(ctx context.Context, actor Actor, req AllocateRequest) (allocation.Allocation, error) {
	var out allocation.Allocation
	if err := req.check(); err != nil {
		return out, err
	}
	if req.Lease == 0 {
		req.Lease = DefaultLease
	}
	var pool *poolUnit
	err := l.do(ctx, actor, func(u *unit) error {
		h, err := u.holding()
		if err != nil {
			return err
		}
		pools, err := u.candidates(req.Pool, req.Model)
		if err != nil {
			return err
		}
		slices.SortStableFunc(pools, func(a, b *poolUnit) int { return b.warm() - a.warm() })
		var refused error
		for _, p := range pools {
			shape, _ := gpu.ShapeFor(req.GPUs, p.Pool.PerNode)
			a, err := u.take(p, h, takeRequest{shape: shape, lease: req.Lease, name: req.Name, own: p.takeable(h.org.ID, u.now(), l.cfg.Policy), dryRun: req.DryRun})
			if re := (*RefusedError)(nil); errors.As(err, &re) {
				refused = err
				continue
			}
			out, pool = a, p
			return err
		}
		return refused
	})
	return current(out, pool, err)
}

// Claim takes over one reservation of the actor's organization.
func (l *Ledger) Claim(ctx context.Context, actor Actor, reservationID string, lease time.Duration, name string) (allocation.Allocation, error) {
	var out allocation.Allocation
	var pool *poolUnit
	err := l.do(ctx, actor, func(u *unit) error {
		h, err := u.holding()
		if err != nil {
			return err
		}
		seen, err := u.tx.Reservation(actor.Scope(), reservationID)
		if err != nil {
			return err
		}
		if pool, err = u.lockPool(seen.PoolID); err != nil {
			return fmt.Errorf("locking pool: %w", err)
		}
		r, ok := pool.reservation(reservationID)
		if !ok || !r.Placed() || r.OrganizationID != h.org.ID {
			return &StateError{Subject: seen.ID, State: string(seen.State()), Asked: "claim it"}
		}
		if lease == 0 {
			lease = max(r.Window.End.Sub(u.now()), time.Minute)
		}
		out, err = u.take(pool, h, takeRequest{shape: r.Shape, lease: lease, name: name, own: []reservation.Reservation{r}, explicit: true})
		return err
	})
	return current(out, pool, err)
}

// current returns the allocation with the version that is now stored.
func current(a allocation.Allocation, p *poolUnit, err error) (allocation.Allocation, error) {
	if err == nil && p != nil {
		if stored, ok := p.allocation(a.ID); ok {
			a = stored
		}
	}
	return a, err
}

// holding is the locked organization an actor takes GPUs for.
type holding struct {
	org         Organization
	commitments Commitments
}

// count adds a reservation of the key to what is committed, or with sign -1
// takes it out.
func (h *holding) count(keyID string, r reservation.Reservation, sign int) {
	own := h.commitments.ByKey[keyID]
	if own == nil {
		own = &quota.Commitments{}
		if h.commitments.ByKey == nil {
			h.commitments.ByKey = map[string]*quota.Commitments{}
		}
		h.commitments.ByKey[keyID] = own
	}
	parts := []*quota.Commitments{&h.commitments.All, own}
	if r.Class == reservation.Speculative {
		parts = append(parts, &h.commitments.Guessed)
	}
	for _, c := range parts {
		c.Add(r.Window, quota.Vector{quota.GPUs: int64(sign * r.Shape.GPUs())}, quota.Spend{Cost: gpu.MicroUSD(sign) * r.Cost})
	}
}

func (u *unit) holding() (*holding, error) {
	orgID, err := u.actor.holder()
	if err != nil {
		return nil, err
	}
	h := &holding{}
	if h.org, err = u.lockOrganization(orgID); err != nil {
		return nil, fmt.Errorf("locking organization: %w", err)
	}
	if h.commitments, err = u.tx.Commitments(orgID); err != nil {
		return nil, fmt.Errorf("reading commitments: %w", err)
	}
	return h, nil
}

// warm counts the pool's ready nodes.
func (p *poolUnit) warm() int {
	n := 0
	for _, node := range p.Nodes {
		if p.standing(node.Slot) == rankReady {
			n++
		}
	}
	return n
}

// takeable lists the organization's own speculative reservations that work
// starting now may use: the ones ready, or due within their lead time.
func (p *poolUnit) takeable(orgID string, now time.Time, policy plan.Policy) []reservation.Reservation {
	soon := now.Add(plan.Lead(p.Pool.Boot, policy))
	var own []reservation.Reservation
	for _, r := range p.Reservations {
		if r.OrganizationID == orgID && r.Class == reservation.Speculative && r.Placed() && !r.Window.Start.After(soon) {
			own = append(own, r)
		}
	}
	return own
}

// takeRequest is what Allocate and Claim have in common.
type takeRequest struct {
	shape    gpu.Shape
	lease    time.Duration
	name     string
	own      []reservation.Reservation // may be claimed; with explicit, all of them are
	explicit bool
	dryRun   bool
}

// take finds a place for an allocation that starts now, claims what it uses of
// the own reservations, and activates it if its nodes are ready.
func (u *unit) take(p *poolUnit, h *holding, req takeRequest) (allocation.Allocation, error) {
	d, window, view := u.decideNow(p, h, req)
	if !d.Accepted() {
		return allocation.Allocation{}, &RefusedError{Pool: p.Pool.Name, PerNode: p.Pool.PerNode, Decision: d}
	}
	a := allocation.New(allocation.Allocation{
		ID: u.ids.New(ids.Allocation), OrganizationID: h.org.ID, PoolID: p.Pool.ID, Name: clip(req.name, 80), HeldBy: u.actor.KeyID,
		Shape: req.shape, Slots: d.Slots, Lease: req.lease, Window: window,
	}, u.now())
	if req.dryRun {
		return a, nil
	}
	if err := u.displace(p, d.DisplacedIDs()); err != nil {
		return a, err
	}
	claimed, err := u.claim(p, view.Slots, a, req)
	if err != nil {
		return a, err
	}
	a.Reservations = claimed
	p.putAllocation(a)
	u.wakePlan(p.Pool.ID)
	if held, ok := p.free(a); ok {
		return u.activate(p, a, held)
	}
	u.event(Event{OrganizationID: a.OrganizationID, Type: "allocation." + string(a.State()), Subject: a.ID, PoolID: p.Pool.ID,
		Message: fmt.Sprintf("%d GPUs in %s: waiting for nodes to boot", req.shape.GPUs(), p.Pool.Name)})
	return a, nil
}

// decideNow admits a request that starts now as if the own reservations were
// not there, preferring their places. A request that must wait for a boot is
// admitted again with the boot's time added, so that its lease is whole.
func (u *unit) decideNow(p *poolUnit, h *holding, req takeRequest) (admission.Decision, calendar.Interval, admission.View) {
	rank := p.rankNow(req.own, req.explicit)
	view := u.view(p, h.org, &h.commitments, rank)
	view.Slots = p.calendar()
	for _, r := range req.own {
		view.Slots.Remove(r.ID)
		view.Committed.Hold(r.Window, quota.Vector{quota.GPUs: -int64(r.Shape.GPUs())})
		defer view.Committed.Hold(r.Window, quota.Vector{quota.GPUs: int64(r.Shape.GPUs())}) // another pool may be asked next
		view.Speculative = slices.DeleteFunc(view.Speculative, func(g admission.Guess) bool { return g.ID == r.ID })
	}
	window := calendar.Interval{Start: u.now(), End: u.now().Add(req.lease)}
	ask := admission.Request{Class: reservation.Guaranteed, Shape: req.shape, Window: window, Now: true}
	d := admission.Decide(ask, view)
	if d.Accepted() && !p.allReady(d.Slots) {
		boot := p.Pool.Boot.P95() + u.cfg.Policy.Guard
		ask.Window.End = ask.Window.End.Add(boot)
		view.Pool.Timers.MaxLease += boot
		d = admission.Decide(ask, view)
	}
	return d, ask.Window, view
}

func (p *poolUnit) allReady(slots []int) bool {
	return !slices.ContainsFunc(slots, func(slot int) bool { return p.standing(slot) != rankReady })
}

// rankNow prefers the places of the own reservations, then whatever is usable
// soonest. The places of an explicit claim come before everything.
func (p *poolUnit) rankNow(own []reservation.Reservation, explicit bool) calendar.Rank {
	mine := map[int]bool{}
	for _, r := range own {
		for _, slot := range r.Slots {
			mine[slot] = true
		}
	}
	return func(slot int) int {
		rank := p.standing(slot)
		if mine[slot] && (explicit || rank == rankReady) {
			return rankOwnReady
		}
		return rank
	}
}

// claim takes over the own reservations whose places the allocation uses, up to
// its GPUs on each; the others stay, or give way where they no longer fit.
func (u *unit) claim(p *poolUnit, slots *calendar.Slots, a allocation.Allocation, req takeRequest) ([]string, error) {
	slots.Force(a.Booking())
	left := map[int]int{}
	for _, slot := range a.Slots {
		left[slot] = a.Shape.PerNode
	}
	var claimed []string
	for _, r := range req.own {
		used := false
		for _, slot := range r.Slots {
			if left[slot] > 0 {
				left[slot] -= r.Shape.PerNode
				used = true
			}
		}
		switch {
		case used || req.explicit:
			message := fmt.Sprintf("claimed by %s", name(a))
			if _, err := u.stepReservation(p, r, reservation.Claim, "claimed", message); err != nil {
				return nil, err
			}
			claimed = append(claimed, r.ID)
		case slots.Place(r.Booking()) != nil:
			if err := u.displace(p, []string{r.ID}); err != nil {
				return nil, err
			}
		}
	}
	return claimed, nil
}

// activate hands the devices over. The lease counts from now, as far as the
// calendar allows it.
func (u *unit) activate(p *poolUnit, a allocation.Allocation, held []allocation.Held) (allocation.Allocation, error) {
	a.Devices = held
	wait := u.now().Sub(a.RequestedAt)
	message := fmt.Sprintf("%d GPUs in %s after %s", len(held), p.Pool.Name, wait.Round(100*time.Millisecond))
	if wait <= allocation.ZeroWait {
		message = fmt.Sprintf("%d GPUs in %s with zero wait", len(held), p.Pool.Name)
	}
	a, err := u.stepAllocation(p, a, allocation.Activate, plan.ReasonNodesReady, message)
	if err != nil {
		return a, err
	}
	slots := p.calendar()
	slots.Remove(a.ID)
	whole := calendar.Interval{Start: u.now(), End: a.LeaseUntil}
	if slices.ContainsFunc(a.Slots, func(slot int) bool { return !slots.Fits(slot, a.Shape.PerNode, whole) }) {
		a.LeaseUntil = a.Window.End
	}
	a.Window.End = a.LeaseUntil
	p.putAllocation(a)
	return a, nil
}

func name(a allocation.Allocation) string {
	if a.Name != "" {
		return a.Name
	}
	return a.ID
}
