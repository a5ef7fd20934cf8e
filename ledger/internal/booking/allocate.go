package booking

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/tenancy"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// Allocate gives GPUs to the actor's organization: warm ones at once, first
// those that its own speculative reservations hold, or a place and a boot to
// wait for. It answers *RefusedError with every blocker.
func (l Booking) Allocate(ctx context.Context, actor ledger.Actor, req ledger.AllocateRequest) (
	allocation.Allocation, error) {
	var out allocation.Allocation
	if err := req.Check(); err != nil {
		return out, err
	}
	if req.Lease == 0 {
		req.Lease = ledger.DefaultLease
	}
	err := l.InGroup(ctx, actor, req.LockHint(), func(tx *txn.Tx) error {
		h, err := readHolding(tx)
		if err != nil {
			return err
		}
		pools, err := lockCandidates(tx, req.PoolNeeds())
		if err != nil {
			return err
		}
		if pools, err = reservedOf(pools); err != nil {
			return err
		}
		out, err = allocateFirst(tx, pools, h, req)
		return err
	})
	return out, err
}

// reservedOf leaves out the pools in which GPUs are not handed out. It is an
// *ObservedPoolError when none is left.
func reservedOf(pools []*txn.PoolTx) ([]*txn.PoolTx, error) {
	var rest []*txn.PoolTx
	for _, p := range pools {
		if !p.Pool.Observed {
			rest = append(rest, p)
		}
	}
	if len(rest) == 0 && len(pools) > 0 {
		return nil, &ledger.ObservedPoolError{Pool: pools[0].Pool.Name, Asked: "hand out GPUs"}
	}
	return rest, nil
}

// allocateFirst takes GPUs in the first pool that accepts: one where they are
// ready at once, if there is one.
func allocateFirst(tx *txn.Tx, pools []*txn.PoolTx, h *holding, req ledger.AllocateRequest) (
	allocation.Allocation, error) {
	ask := func(p *txn.PoolTx) takeRequest {
		shape, _ := p.Pool.ShapeOf(req.Layout, req.GPUs)
		return takeRequest{shape: shape, lease: req.Lease, name: req.Name,
			own: claimableNow(p, h.org.ID, tx.Now(), tx.Config.Policy), workload: req.Workload, waited: req.Waited}
	}
	if err := putReadyFirst(tx, pools, h, ask); err != nil {
		return allocation.Allocation{}, err
	}
	var passed ledger.PassedPools
	for _, p := range pools {
		take := ask(p)
		take.passed = passed
		a, err := takeGPUs(tx, p, h, take)
		if passed.PassOver(p.Pool.Name, err) {
			continue
		}
		a.Version = p.CommittedVersion(a.ID, a.Version)
		return a, err
	}
	return allocation.Allocation{}, passed.RefusalOfAll()
}

// putReadyFirst moves the pools to the front in which the request would begin at
// once, and of a job, of those and of the others, those whose nodes suit it better.
func putReadyFirst(tx *txn.Tx, pools []*txn.PoolTx, h *holding, ask func(*txn.PoolTx) takeRequest) error {
	if len(pools) < 2 {
		return nil
	}
	cold, worse := map[string]int{}, map[string]int{}
	for _, p := range pools {
		req := ask(p)
		d, _, err := decideNow(tx, p, h, req)
		if err != nil {
			return err
		}
		slots := d.Slots
		if !d.Accepted() || !allReady(p, d.Slots) {
			cold[p.Pool.ID], slots = 1, nil
		}
		if req.job == nil {
			continue
		}
		if worse[p.Pool.ID], err = worstRank(p, *req.job, slots); err != nil {
			return err
		}
	}
	slices.SortStableFunc(pools, func(a, b *txn.PoolTx) int {
		return cmp.Or(cold[a.Pool.ID]-cold[b.Pool.ID], worse[a.Pool.ID]-worse[b.Pool.ID])
	})
	return nil
}

// holding is the locked organization that somebody takes GPUs for, with what it
// and those of its cohort are committed to; that follows what the transaction changes.
type holding struct {
	org         ledger.Organization
	commitments *ledger.Commitments
	cohort      []quota.Member // the others, locked too
	who         ledger.Asker
	offspring   offspring
	pause       *admission.Pause // why nothing speculative is warmed for it, else nil
}

func readHolding(tx *txn.Tx) (*holding, error) {
	orgID, err := tx.Actor.BookingOrganization()
	if err != nil {
		return nil, err
	}
	return readHoldingOf(tx, orgID, tx.Actor.AskerFor())
}

func readHoldingOf(tx *txn.Tx, organizationID string, who ledger.Asker) (*holding, error) {
	org, others, err := tenancy.LockSharers(tx, organizationID)
	if err != nil {
		return nil, fmt.Errorf("locking organization: %w", err)
	}
	if !org.DeletedAt.IsZero() {
		return nil, ledger.ErrDenied // a key of it that was looked up a moment ago
	}
	h := &holding{org: org, who: who}
	if h.offspring, err = offspringOf(tx, who); err != nil {
		return nil, fmt.Errorf("reading what keys made: %w", err)
	}
	if h.commitments, err = tx.Commitments(organizationID); err != nil {
		return nil, fmt.Errorf("reading commitments: %w", err)
	}
	for _, o := range others {
		c, err := tx.Commitments(o.ID)
		if err != nil {
			return nil, fmt.Errorf("reading commitments of the cohort: %w", err)
		}
		h.cohort = append(h.cohort, quota.Member{Limits: o.Limits, Committed: &c.All})
	}
	return h, nil
}

// readPause notes whether the organization may have something warmed speculatively.
func readPause(tx *txn.Tx, h *holding) error {
	paused, err := tenancy.ReadPauses(tx)
	if err == nil {
		if p, held := paused.PauseOf(h.org.ID); held {
			h.pause = &admission.Pause{Everybody: p.OrganizationID == "", Reason: p.Reason, Until: p.Until}
		}
	}
	return err
}

// claimableNow lists the organization's own speculative reservations that work
// starting now may use: the ones ready, or due within their lead time.
func claimableNow(p *txn.PoolTx, orgID string, now time.Time, policy plan.Policy) []reservation.Reservation {
	soon := now.Add(plan.Lead(p.Pool.AsPlanned(now).Boot, policy))
	var own []reservation.Reservation
	for r := range p.Reservations.All() {
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
	own      []reservation.Reservation // may be claimed; with explicit, there is one, which is, or part says what of them
	explicit bool
	part     []int // slots on which it takes what it needs of own, one reservation's rows, whose rest stays
	workload capacity.Workload
	waited   time.Duration      // before, for room
	jobID    string             // that it is for; empty: none
	job      *job.Job           // it, if any
	passed   ledger.PassedPools // by the pools that were tried before

	shutLast bool              // nodes that the organization's work could not enter now are the last ones
	together *calendar.SlotSet // these slots are the first ones; nil: none
}

// apart are those with whom the job, if it is for one, shares no node.
func (r takeRequest) apart() []string {
	if r.job == nil {
		return nil
	}
	return r.job.Where.Apart
}

// takeGPUs finds a place for an allocation that starts now, claims what it uses of
// the tenant's own reservations, and activates it if its nodes are ready.
func takeGPUs(tx *txn.Tx, p *txn.PoolTx, h *holding, req takeRequest) (allocation.Allocation, error) {
	if p.Pool.Recovery.Active() {
		return allocation.Allocation{}, fmt.Errorf("pool %s: %w", p.Pool.Name, ledger.ErrRecovering)
	}
	d, window, err := decideWhere(tx, p, h, req)
	if err != nil {
		return allocation.Allocation{}, err
	}
	if !d.Accepted() {
		if req.explicit && req.job == nil { // what it may have is a claim, too
			if d.Offers, err = offersOfClaim(tx, p, h, req.own[0], req.lease); err != nil {
				return allocation.Allocation{}, err
			}
		}
		return allocation.Allocation{}, txn.RefuseRequest(tx, p, h.org.ID, "allocation", d)
	}
	a := allocation.New(allocation.Allocation{
		ID: tx.IDs.New(ids.Allocation), OrganizationID: h.org.ID, PoolID: p.Pool.ID,
		Name:   ledger.ClipText(req.name, 80),
		HeldBy: tx.Actor.KeyID, UserID: tx.Actor.UserID, JobID: req.jobID,
		Workload: req.workload, Shape: req.shape, Slots: d.Slots, Lease: req.lease, Window: window,
		Cost:        admission.Cost(p.Pool.Pool, req.shape, req.lease),
		RequestedAt: tx.Now().Add(-req.waited), Apart: req.apart(),
	}, tx.Now())
	if err = makeWay(tx, p, d); err != nil {
		return a, err
	}
	claimed, err := claimOwn(tx, p, h, a, req, d)
	if err != nil {
		return a, err
	}
	a.Reservations = claimed
	p.PutAllocation(a)
	chargeEntry(tx, p, a)
	tx.WakePlan(p.Pool.ID)
	if held, ok := FreeDevices(p, a); ok {
		a, err = ActivateAllocation(tx, p, a, held)
		tx.AttachDecision(d.DecisionRecord(ledger.DecisionAdmission))
		return a, err
	}
	tx.AddEvent(ledger.Event{OrganizationID: a.OrganizationID, Type: "allocation." + string(a.State()), Subject: a.ID,
		PoolID: p.Pool.ID,
		Message: fmt.Sprintf("%s in %s: waiting for nodes to boot%s", phrase.Count(req.shape.GPUs(), "GPU"),
			p.Pool.Name,
			req.passed.DescribePassed()), Decision: d.DecisionRecord(ledger.DecisionAdmission)})
	return a, nil
}

func allReady(p *txn.PoolTx, slots []int) bool {
	return !slices.ContainsFunc(slots, func(slot int) bool { return p.SlotReadiness(slot) != txn.SlotReady })
}

// claimOwn takes over the tenant's own reservations whose places the allocation uses, up to
// its GPUs on each; the others stay, or give way where they no longer fit.
func claimOwn(tx *txn.Tx, p *txn.PoolTx, h *holding, a allocation.Allocation, req takeRequest, v txn.Verdict) (
	[]string, error) {
	if req.part != nil {
		return claimPart(tx, p, a, req)
	}
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
		r.JobID = req.jobID
		if _, err := tx.StepReservation(p, r, reservation.Claim, "claimed",
			"claimed by "+allocationName(a)); err != nil {
			return nil, err
		}
		claimed = append(claimed, r.ID)
	}
	return claimed, displaceReservations(tx, p, displacedBy(p, h, a, others), v)
}

// displacedBy lists those of the reservations that have no room beside the
// allocation any more: no place, or nothing left of what the organization may
// hold. The cache stays as it is.
func displacedBy(p *txn.PoolTx, h *holding, a allocation.Allocation, others []reservation.Reservation) []string {
	for _, r := range others {
		p.SetReservation(&r, nil)
	}
	p.SetAllocation(nil, &a)
	var out []reservation.Reservation
	for _, r := range others {
		if p.Places.FitsAll(r.Booking()) && h.allowsReservation(p.Pool.Pool, r) {
			p.SetReservation(nil, &r)
		} else {
			out = append(out, r)
		}
	}
	p.SetAllocation(&a, nil)
	ids := make([]string, len(out))
	for i, r := range out {
		p.SetReservation(nil, &r)
		ids[i] = r.ID
	}
	return ids
}

// allowsReservation reports whether the organization may hold the reservation's GPUs beside
// what it holds.
func (h *holding) allowsReservation(p capacity.Pool, r reservation.Reservation) bool {
	standing := quota.Measure(
		quota.Holdings{Limits: h.org.Limits, Committed: &h.commitments.All, Cohort: h.cohort},
		quota.Ask{Window: r.Window, Demand: quota.Demand(p, r.Shape)})
	return !slices.ContainsFunc(standing.Violations(), func(v quota.Violation) bool {
		return v.Rule == quota.RuleNominal || v.Rule == quota.RuleCohort
	})
}

// ActivateAllocation hands the devices over. The lease counts from now, as far as the
// calendar allows it.
func ActivateAllocation(tx *txn.Tx, p *txn.PoolTx, a allocation.Allocation, held []allocation.Held) (
	allocation.Allocation, error) {
	a.Devices = held
	wait := tx.Now().Sub(a.RequestedAt)
	message := fmt.Sprintf("%s in %s after %s", phrase.Count(len(held), "GPU"), p.Pool.Name, phrase.Span(wait))
	if wait <= allocation.ZeroWait {
		message = fmt.Sprintf("%s in %s with zero wait", phrase.Count(len(held), "GPU"), p.Pool.Name)
	}
	a, err := tx.StepAllocation(p, a, allocation.Activate, plan.ReasonNodesReady, message)
	if err != nil {
		return a, err
	}
	was := a.Window.End
	p.Places.Remove(a.ID)
	whole := a.Booking()
	whole.Interval = calendar.Interval{Start: tx.Now(), End: a.LeaseUntil}
	fits := p.Places.FitsAll(whole)
	p.Places.Force(a.Booking())
	if !fits {
		a.LeaseUntil = a.Window.End
	}
	a.Window.End = a.LeaseUntil
	a.Cost = txn.LeaseCost(p.Pool, a)
	p.PutAllocation(a)
	return a, reserveRest(tx, p, a, was, a.Window.End.Add(p.Places.Margin()))
}

func allocationName(a allocation.Allocation) string {
	if a.Name != "" {
		return a.Name
	}
	return a.ID
}
