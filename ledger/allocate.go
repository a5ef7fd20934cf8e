package ledger

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/internal/ids"
)

// DefaultLease is the lease of an allocation that names none.
const DefaultLease = time.Hour

// AllocateRequest asks for GPUs now.
type AllocateRequest struct {
	Pool  string // id or name; empty: of Model, and such that it meets Needs and can serve: warm ones first, then the cheapest
	Model string
	Needs capacity.Needs
	GPUs  int // 0: those of Layout
	// Layout is how they are to lie on nodes; zero: on as few as can be.
	Layout capacity.Layout
	Lease  time.Duration // counts from activation; zero means DefaultLease
	Name   string
	// Workload is what it is for; empty: online.
	Workload capacity.Workload
}

func (r *AllocateRequest) checkRequest() (err error) {
	if r.GPUs, err = layOut(r.GPUs, r.Layout); err != nil {
		return err
	}
	if r.Lease < 0 || (r.Lease > 0 && r.Lease < time.Second) {
		return &InvalidError{Field: "lease_seconds", Rule: "must be at least 1 s"}
	}
	return r.poolNeeds().checkNeeds()
}

func (r AllocateRequest) poolNeeds() poolNeeds {
	return poolNeeds{pool: r.Pool, model: r.Model, needs: r.Needs}
}

// Allocate gives GPUs to the actor's organization: warm ones at once, first
// those that its own speculative reservations hold, or a place and a boot to
// wait for. It answers *RefusedError with every blocker.
func (l Booking) Allocate(ctx context.Context, actor Actor, req AllocateRequest) (allocation.Allocation, error) {
	var out allocation.Allocation
	if err := req.checkRequest(); err != nil {
		return out, err
	}
	if req.Lease == 0 {
		req.Lease = DefaultLease
	}
	err := l.inGroup(ctx, actor, req.lockHint(), func(tx *groupTx) error {
		h, err := readHolding(tx)
		if err != nil {
			return err
		}
		pools, err := lockCandidates(tx, req.poolNeeds())
		if err != nil {
			return err
		}
		out, err = allocateFirst(tx, pools, h, req)
		return err
	})
	return out, err
}

// allocateFirst takes GPUs in the first pool that accepts: one where they are
// ready at once, if there is one.
func allocateFirst(tx *groupTx, pools []*poolTx, h *holding, req AllocateRequest) (allocation.Allocation, error) {
	ask := func(p *poolTx) takeRequest {
		shape, _ := req.Layout.Shape(req.GPUs, p.Pool.PerNode)
		return takeRequest{shape: shape, lease: req.Lease, name: req.Name,
			own: claimableNow(p, h.org.ID, tx.now(), tx.cfg.Policy), workload: req.Workload}
	}
	if err := putReadyFirst(tx, pools, h, ask); err != nil {
		return allocation.Allocation{}, err
	}
	var passed passedPools
	for _, p := range pools {
		take := ask(p)
		take.passed = passed
		a, err := takeGPUs(tx, p, h, take)
		if passed.passOver(p, err) {
			continue
		}
		a.Version = p.committedVersion(a.ID, a.Version)
		return a, err
	}
	return allocation.Allocation{}, passed.refusalOfAll()
}

// putReadyFirst moves the pools to the front in which the request would begin at
// once.
func putReadyFirst(tx *groupTx, pools []*poolTx, h *holding, ask func(*poolTx) takeRequest) error {
	if len(pools) < 2 {
		return nil
	}
	cold := map[string]int{}
	for _, p := range pools {
		d, _, err := decideNow(tx, p, h, ask(p))
		if err != nil {
			return err
		}
		if !d.Accepted() || !allReady(p, d.Slots) {
			cold[p.Pool.ID] = 1
		}
	}
	slices.SortStableFunc(pools, func(a, b *poolTx) int { return cold[a.Pool.ID] - cold[b.Pool.ID] })
	return nil
}

// lockHint names what the request will lock, if it names it.
func (r AllocateRequest) lockHint() *LockHint {
	if r.Pool == "" {
		return nil
	}
	return &LockHint{Pool: r.Pool}
}

// holding is the locked organization that somebody takes GPUs for, with what it
// and those of its cohort are committed to; that follows what the transaction changes.
type holding struct {
	org         Organization
	commitments *Commitments
	cohort      []quota.Member // the others, locked too
	who         asker
	offspring   offspring
	pause       *admission.Pause // why nothing is warmed for it on a guess, else nil
}

func readHolding(tx *groupTx) (*holding, error) {
	orgID, err := tx.actor.bookingOrganization()
	if err != nil {
		return nil, err
	}
	return readHoldingOf(tx, orgID, tx.actor.askerFor())
}

func readHoldingOf(tx *groupTx, organizationID string, who asker) (*holding, error) {
	org, others, err := lockSharers(tx, organizationID)
	if err != nil {
		return nil, fmt.Errorf("locking organization: %w", err)
	}
	if !org.DeletedAt.IsZero() {
		return nil, ErrDenied // a key of it that was looked up a moment ago
	}
	h := &holding{org: org, who: who}
	if h.offspring, err = offspringOf(tx, who); err != nil {
		return nil, fmt.Errorf("reading what keys made: %w", err)
	}
	if h.commitments, err = tx.commitments(organizationID); err != nil {
		return nil, fmt.Errorf("reading commitments: %w", err)
	}
	for _, o := range others {
		c, err := tx.commitments(o.ID)
		if err != nil {
			return nil, fmt.Errorf("reading commitments of the cohort: %w", err)
		}
		h.cohort = append(h.cohort, quota.Member{Limits: o.Limits, Committed: &c.All})
	}
	return h, nil
}

// readPause notes whether the organization may have something warmed on a guess.
func readPause(tx *groupTx, h *holding) error {
	paused, err := readPauses(tx)
	if err == nil {
		if p, held := paused.pauseOf(h.org.ID); held {
			h.pause = &admission.Pause{Everybody: p.OrganizationID == "", Reason: p.Reason, Until: p.Until}
		}
	}
	return err
}

// claimableNow lists the organization's own speculative reservations that work
// starting now may use: the ones ready, or due within their lead time.
func claimableNow(p *poolTx, orgID string, now time.Time, policy plan.Policy) []reservation.Reservation {
	soon := now.Add(plan.Lead(p.Pool.asPlanned(now).Boot, policy))
	var own []reservation.Reservation
	for r := range p.reservations.allRows() {
		if r.OrganizationID == orgID && r.Class == reservation.Speculative && r.Placed() &&
			!r.Window.Start.After(soon) {
			own = append(own, r)
		}
	}
	return own
}

// takeRequest is what Allocate and Claim have in common.
type takeRequest struct {
	shape    capacity.Shape
	lease    time.Duration
	name     string
	own      []reservation.Reservation // may be claimed; with explicit, all of them are
	explicit bool
	workload capacity.Workload
	passed   passedPools // by the pools that were tried before
}

// takeGPUs finds a place for an allocation that starts now, claims what it uses of
// the own reservations, and activates it if its nodes are ready.
func takeGPUs(tx *groupTx, p *poolTx, h *holding, req takeRequest) (allocation.Allocation, error) {
	if p.Pool.Recovery.Active() {
		return allocation.Allocation{}, fmt.Errorf("pool %s: %w", p.Pool.Name, ErrRecovering)
	}
	d, window, err := decideNow(tx, p, h, req)
	if err != nil {
		return allocation.Allocation{}, err
	}
	if !d.Accepted() {
		return allocation.Allocation{}, refuseRequest(tx, p, h.org.ID, "allocation", d)
	}
	a := allocation.New(allocation.Allocation{
		ID: tx.ids.New(ids.Allocation), OrganizationID: h.org.ID, PoolID: p.Pool.ID, Name: clipText(req.name, 80),
		HeldBy: tx.actor.KeyID, UserID: tx.actor.UserID,
		Workload: req.workload, Shape: req.shape, Slots: d.Slots, Lease: req.lease, Window: window,
		Cost: admission.Cost(p.Pool.Pool, req.shape, req.lease),
	}, tx.now())
	if err = makeWay(tx, p, d); err != nil {
		return a, err
	}
	claimed, err := claimOwn(tx, p, h, a, req, d)
	if err != nil {
		return a, err
	}
	a.Reservations = claimed
	p.putAllocation(a)
	chargeEntry(tx, p, a)
	tx.wakePlan(p.Pool.ID)
	if held, ok := freeDevices(p, a); ok {
		a, err = activateAllocation(tx, p, a, held)
		tx.attachDecision(d.decisionRecord(DecisionAdmission))
		return a, err
	}
	tx.addEvent(Event{OrganizationID: a.OrganizationID, Type: "allocation." + string(a.State()), Subject: a.ID,
		PoolID: p.Pool.ID,
		Message: fmt.Sprintf("%s in %s: waiting for nodes to boot%s", phrase.Count(req.shape.GPUs(), "GPU"), p.Pool.Name,
			req.passed.describePassed()), Decision: d.decisionRecord(DecisionAdmission)})
	return a, nil
}

func allReady(p *poolTx, slots []int) bool {
	return !slices.ContainsFunc(slots, func(slot int) bool { return p.slotReadiness(slot) != standingReady })
}

// claimOwn takes over the own reservations whose places the allocation uses, up to
// its GPUs on each; the others stay, or give way where they no longer fit.
func claimOwn(tx *groupTx, p *poolTx, h *holding, a allocation.Allocation, req takeRequest, v verdict) ([]string, error) {
	left := map[int]int{}
	for i, slot := range a.Slots {
		left[slot] = a.Shape.On(i)
	}
	var claimed []string
	var others []reservation.Reservation
	for _, r := range req.own {
		used := false
		for i, slot := range r.Slots {
			if left[slot] > 0 {
				left[slot] -= r.Shape.On(i)
				used = true
			}
		}
		if !used && !req.explicit {
			others = append(others, r)
			continue
		}
		if _, err := tx.stepReservation(p, r, reservation.Claim, "claimed", "claimed by "+allocationName(a)); err != nil {
			return nil, err
		}
		claimed = append(claimed, r.ID)
	}
	return claimed, displaceReservations(tx, p, displacedBy(p, h, a, others), v)
}

// displacedBy lists those of the reservations that have no room beside the
// allocation any more: no place, or nothing left of what the organization may
// hold. The cache stays as it is.
func displacedBy(p *poolTx, h *holding, a allocation.Allocation, others []reservation.Reservation) []string {
	for _, r := range others {
		p.setReservation(&r, nil)
	}
	p.setAllocation(nil, &a)
	var out []reservation.Reservation
	for _, r := range others {
		if p.places.FitsAll(r.Booking()) && h.allowsReservation(p.Pool.Pool, r) {
			p.setReservation(nil, &r)
		} else {
			out = append(out, r)
		}
	}
	p.setAllocation(&a, nil)
	ids := make([]string, len(out))
	for i, r := range out {
		p.setReservation(nil, &r)
		ids[i] = r.ID
	}
	return ids
}

// allowsReservation reports whether the organization may hold the reservation's GPUs beside
// what it holds.
func (h *holding) allowsReservation(p capacity.Pool, r reservation.Reservation) bool {
	standing := quota.Measure(quota.Holdings{Limits: h.org.Limits, Committed: &h.commitments.All},
		quota.Ask{Window: r.Window, Demand: quota.Demand(p, r.Shape)})
	return !slices.ContainsFunc(standing.Violations(), func(v quota.Violation) bool {
		return v.Rule == quota.RuleNominal || v.Rule == quota.RuleCohort
	})
}

// activateAllocation hands the devices over. The lease counts from now, as far as the
// calendar allows it.
func activateAllocation(tx *groupTx, p *poolTx, a allocation.Allocation, held []allocation.Held) (allocation.Allocation, error) {
	a.Devices = held
	wait := tx.now().Sub(a.RequestedAt)
	message := fmt.Sprintf("%s in %s after %s", phrase.Count(len(held), "GPU"), p.Pool.Name, phrase.Span(wait))
	if wait <= allocation.ZeroWait {
		message = fmt.Sprintf("%s in %s with zero wait", phrase.Count(len(held), "GPU"), p.Pool.Name)
	}
	a, err := tx.stepAllocation(p, a, allocation.Activate, plan.ReasonNodesReady, message)
	if err != nil {
		return a, err
	}
	p.places.Remove(a.ID)
	whole := a.Booking()
	whole.Interval = calendar.Interval{Start: tx.now(), End: a.LeaseUntil}
	fits := p.places.FitsAll(whole)
	p.places.Force(a.Booking())
	if !fits {
		a.LeaseUntil = a.Window.End
	}
	a.Window.End = a.LeaseUntil
	a.Cost = leaseCost(p.Pool, a)
	p.putAllocation(a)
	return a, nil
}

func allocationName(a allocation.Allocation) string {
	if a.Name != "" {
		return a.Name
	}
	return a.ID
}
