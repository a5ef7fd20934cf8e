package booking

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/tenancy"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// Release ends an allocation. One that still waits is cancelled.
func (l Booking) Release(ctx context.Context, actor ledger.Actor, id string) (allocation.Allocation, error) {
	return withAllocation(ctx, l.Engine, actor, id, func(tx *txn.Tx, p *txn.PoolTx,
		a allocation.Allocation) (allocation.Allocation, error) {
		if p != nil && a.Observed() {
			return a, &ledger.ObservedPoolError{Pool: p.Pool.Name, Asked: "release GPUs"}
		}
		switch a.State() {
		case allocation.Pending:
			return cancelAllocation(tx, p, a, "asked", "gave up waiting")
		case allocation.Active:
			return releaseAllocation(tx, p, a)
		default:
			return a, &ledger.StateError{Subject: a.ID, State: string(a.State()), Asked: "release it"}
		}
	})
}

// releaseAllocation walks through releasing to released: the holder is gone with that. What it
// ran on nodes is ended and cleaned up afterwards, and its GPUs are nobody's before that is
// proved (allocation.cleaned).
func releaseAllocation(tx *txn.Tx, p *txn.PoolTx, a allocation.Allocation) (allocation.Allocation, error) {
	held := phrase.Span(tx.Now().Sub(a.ActiveAt))
	a, err := tx.StepAllocation(p, a, allocation.Release, "asked", "")
	if err != nil {
		return a, err
	}
	message := fmt.Sprintf("%s back after %s", phrase.Count(a.Shape.GPUs(), "GPU"), held)
	if len(a.Opened) > 0 {
		message += "; what ran on " + phrase.Count(len(a.Opened), "node") + " is cleaned up next"
	}
	return EndAllocation(tx, p, a, allocation.Finish, "asked", message)
}

// EndAllocation ends an allocation by an event after which it holds nothing. Its nodes are
// idle from then on, if nobody else is on them.
func EndAllocation(tx *txn.Tx, p *txn.PoolTx, a allocation.Allocation, event allocation.Event, reason, message string,
) (allocation.Allocation, error) {
	was := a.Window.End
	a, err := tx.StepAllocation(p, a, event, reason, message)
	MarkIdle(tx, p, a.Slots)
	if err != nil {
		return a, err
	}
	return a, reserveRest(tx, p, a, was, cleanFrom(tx, p, a.ID))
}

// cancelAllocation ends an allocation that waits.
func cancelAllocation(tx *txn.Tx, p *txn.PoolTx, a allocation.Allocation, reason, message string) (
	allocation.Allocation, error) {
	was := a.Window.End
	a, err := tx.StepAllocation(p, a, allocation.Cancel, reason, message)
	if err != nil {
		return a, err
	}
	return a, reserveRest(tx, p, a, was, tx.Now())
}

// Extend prolongs the lease of an active allocation that is not over, if the calendar and the
// quota allow it on the GPUs it holds. What is added counts where the lease does:
// for its holder, whose caps hold, and in the periods in which it began.
func (l Booking) Extend(ctx context.Context, actor ledger.Actor, id string, by time.Duration) (
	allocation.Allocation, error) {
	if by < time.Second {
		return allocation.Allocation{}, &ledger.InvalidError{Field: "by_seconds", Rule: "must be at least 1 s"}
	}
	return withAllocation(ctx, l.Engine, actor, id, func(tx *txn.Tx, p *txn.PoolTx,
		a allocation.Allocation) (allocation.Allocation, error) {
		if p != nil && a.Observed() {
			return a, &ledger.ObservedPoolError{Pool: p.Pool.Name, Asked: "extend a lease"}
		}
		if a.State() != allocation.Active {
			return a, &ledger.StateError{Subject: a.ID, State: string(a.State()), Asked: "extend it"}
		}
		if !tx.Now().Before(a.LeaseUntil) { // what ran there is being ended, and is not begun again
			return a, &ledger.StateError{Subject: a.ID, State: "over", Asked: "extend it"}
		}
		who, err := extendsFor(tx, a)
		if err != nil {
			return a, err
		}
		h, err := readHoldingOf(tx, a.OrganizationID, who)
		if err != nil {
			return a, err
		}
		d, err := decideExtension(tx, p, h, a, by)
		if err != nil {
			return a, err
		}
		if !d.Accepted() {
			refused := txn.RefuseRequest(tx, p, a.OrganizationID, "allocation", d)
			refused.What = ledger.RefusedExtension
			return a, refused
		}
		if err := displaceReservations(tx, p, d.DisplacedIDs(), d); err != nil {
			return a, err
		}
		a.LeaseUntil = a.LeaseUntil.Add(by)
		a.Window.End = a.LeaseUntil
		a.Cost = txn.LeaseCost(p.Pool, a)
		p.PutAllocation(a)
		tx.AddEvent(ledger.Event{OrganizationID: a.OrganizationID, Type: "allocation.extended", Subject: a.ID,
			PoolID: a.PoolID,
			Message: fmt.Sprintf("lease now ends %s and costs up to %s", ledger.FormatTimeSeen(a.LeaseUntil, tx.Now()),
				a.Cost),
			Decision: d.DecisionRecord(ledger.DecisionAdmission)})
		return a, nil
	})
}

// extendsFor is for whom an extension counts: the holder. Whoever has caps must
// not get around them by having it count for another: they extend what counts
// for theirs alone.
func extendsFor(tx *txn.Tx, a allocation.Allocation) (ledger.Asker, error) {
	if a.HeldBy == tx.Actor.KeyID {
		return tx.Actor.AskerFor(), nil
	}
	counts, err := countsFor(tx, tx.Actor.AskerFor(), a)
	if err != nil {
		return ledger.Asker{}, err
	}
	if !counts {
		return ledger.Asker{}, &ledger.NotHolderError{Allocation: a.ID}
	}
	c, err := tenancy.ReadCredential(tx.Port, a.HeldBy)
	if ledger.IgnoreMissing(err) != nil {
		return ledger.Asker{}, fmt.Errorf("reading the holder's key: %w", err)
	}
	who := c.Actor()
	who.KeyID, who.UserID = a.HeldBy, a.UserID
	return who.AskerFor(), nil
}

// countsFor reports whether an allocation counts for all the caps of an asker.
func countsFor(tx *txn.Tx, who ledger.Asker, a allocation.Allocation) (bool, error) {
	made, err := offspringOf(tx, who)
	if err != nil {
		return false, fmt.Errorf("reading what keys made: %w", err)
	}
	if who.Key != nil && !slices.Contains(made.key, a.HeldBy) {
		return false, nil
	}
	if who.User != nil && a.UserID != who.UserID && !slices.Contains(made.user, a.HeldBy) {
		return false, nil
	}
	return !slices.ContainsFunc(made.makers, func(ids []string) bool { return !slices.Contains(ids, a.HeldBy) }), nil
}

// decideExtension decides on added time. Of one that is refused it offers the longest
// that is not, if there is one: an extension begins where the lease ends, or not at
// all.
func decideExtension(tx *txn.Tx, p *txn.PoolTx, h *holding, a allocation.Allocation, by time.Duration) (
	txn.Verdict, error) {
	d, err := admitExtension(tx, p, h, a, by)
	if err != nil || d.Accepted() {
		return d, err
	}
	longest := time.Duration(0) // that is accepted, found by halving: less is never refused where more is not
	for low, high := time.Duration(0), by/time.Second; high-low > 1; {
		half := low + (high-low)/2
		shorter, err := admitExtension(tx, p, h, a, half*time.Second)
		if err != nil {
			return d, err
		}
		if !shorter.Accepted() {
			high = half
			continue
		}
		low, longest = half, half*time.Second
	}
	if longest > time.Minute {
		longest = longest.Truncate(time.Minute)
	}
	if longest > 0 {
		w := calendar.Interval{Start: a.LeaseUntil, End: a.LeaseUntil.Add(longest)}
		d.Offers = []admission.Offer{{Pool: p.Pool.ID, Shape: a.Shape, Window: w,
			Cost: admission.Cost(p.Pool.Pool, a.Shape, longest)}}
	}
	return d, nil
}

// admitExtension admits the added time on the slots that the allocation has.
func admitExtension(tx *txn.Tx, p *txn.PoolTx, h *holding, a allocation.Allocation, by time.Duration) (
	txn.Verdict, error) {
	defer openSlotsOf(p, a)()
	view := admissionView(tx, p, h, nil)
	ask := admission.Request{
		Class: reservation.Guaranteed, Workload: a.Workload, Shape: a.Shape, Now: true,
		Window: calendar.Interval{Start: a.LeaseUntil, End: a.LeaseUntil.Add(by)}, Since: a.Window.Start, At: a.Slots,
		Boot: a.ActiveAt.Sub(a.Window.Start), Prolongs: true,
	}
	d := txn.JudgeRequest(ask, view)
	if d.MakesRoom() {
		var err error
		if d, err = admitDisplacing(tx, p, ask, view, d); err != nil {
			return d, err
		}
	}
	d.Offers = nil
	if limit, whole := p.Pool.Timers.MaxLease, a.LeaseUntil.Add(by).Sub(a.ActiveAt); whole > limit {
		d.RefuseFor(append(d.Reasons, leaseTooLong(p.Pool.Name, limit, whole)))
	}
	return d, nil
}

// leaseTooLong says that a lease would be longer than the pool allows, counted
// from its activation: one that is extended again and again is a long one too.
func leaseTooLong(pool string, limit, whole time.Duration) admission.Reason {
	return admission.Reason{Code: admission.WindowTooLong, Unit: "seconds", Limit: int64(limit / time.Second),
		Asked: int64(whole / time.Second),
		Message: fmt.Sprintf("pool %s allows leases of at most %s; with this it would be %s", pool,
			phrase.Length(limit),
			phrase.Span(whole))}
}

// withAllocation locks the organization and the pool of a visible allocation
// and runs fn on it.
func withAllocation(ctx context.Context, l *txn.Engine, actor ledger.Actor, id string,
	fn func(*txn.Tx, *txn.PoolTx, allocation.Allocation) (allocation.Allocation, error),
) (allocation.Allocation, error) {
	var out allocation.Allocation
	err := l.InGroup(ctx, actor, &ledger.LockHint{Allocation: id}, func(tx *txn.Tx) error {
		p, a, err := findAllocation(tx, actor, id)
		if err != nil {
			return err
		}
		if p != nil {
			tx.WakePlan(p.Pool.ID)
		}
		if out, err = fn(tx, p, a); err == nil {
			out.Version = p.CommittedVersion(id, out.Version)
		}
		return err
	})
	return out, err
}

// FindAllocation returns a visible allocation with its organization and pool
// locked, or, when it is over, without.
func findAllocation(tx *txn.Tx, actor ledger.Actor, id string) (*txn.PoolTx, allocation.Allocation, error) {
	for _, p := range tx.Pools {
		a, ok := p.FindAllocation(id)
		if !ok {
			continue
		}
		if !actor.Scope().All && a.OrganizationID != actor.OrganizationID {
			return nil, a, fmt.Errorf("reading allocation %s: %w", id, ledger.ErrNotFound)
		}
		_, _, err := tenancy.LockSharers(tx, a.OrganizationID)
		return p, a, err
	}
	seen, err := tx.Port.Allocation(actor.Scope(), id)
	if err != nil || !seen.Live() {
		return nil, seen, err
	}
	if _, _, err = tenancy.LockSharers(tx, seen.OrganizationID); err != nil {
		return nil, seen, fmt.Errorf("locking organization: %w", err)
	}
	p, err := tx.LockPool(seen.PoolID)
	if err != nil {
		return nil, seen, fmt.Errorf("locking pool: %w", err)
	}
	if a, ok := p.FindAllocation(id); ok {
		return p, a, nil
	}
	seen, err = tx.Port.Allocation(actor.Scope(), id) // it ended meanwhile
	return nil, seen, err
}

// openSlotsOf opens the slots of an allocation whose nodes are kept until the caller
// calls back: what runs there may run on.
func openSlotsOf(p *txn.PoolTx, a allocation.Allocation) (back func()) {
	var kept []node.Node
	for _, slot := range a.Slots {
		if n, ok := p.NodeOnSlot(slot); ok && n.Kept() {
			p.OpenSlot(n)
			kept = append(kept, n)
		}
	}
	return func() {
		for _, n := range kept {
			p.SetSlotBlocked(n)
		}
	}
}
