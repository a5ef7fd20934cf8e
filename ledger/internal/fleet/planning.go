package fleet

import (
	"context"
	"fmt"
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/booking"
	"github.com/forewarm/forewarm/ledger/internal/tenancy"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// rounds bounds how often one run computes again: an action can make others
// possible, and each round moves something closer to an end.
const rounds = 12

// Plan computes the pool's plan and commits it, again and again until nothing
// is left to do now, and has itself woken when something will be.
func (l Fleet) Plan(ctx context.Context, g ledger.Guard, poolID string) (ledger.Planned, error) {
	var out ledger.Planned
	locks := &ledger.LockHint{Pool: poolID, Alone: true}
	err := l.InGroup(ctx, ledger.SystemActor("planner"), locks, func(tx *txn.Tx) error {
		out = ledger.Planned{}
		p, err := tx.LockPool(poolID)
		if err != nil {
			return fmt.Errorf("locking pool: %w", err)
		}
		if !p.Pool.DeletedAt.IsZero() {
			tx.FinishTask(g, time.Time{})
			return nil
		}
		if p.Pool.Recovery.Active() {
			tx.FinishTask(g, tx.Now().Add(retryWaitlisted))
			return nil
		}
		paused, err := tenancy.ReadPauses(tx)
		if err != nil {
			return err
		}
		learnArrivals(tx, p)
		if err := endCleaning(tx, p); err != nil {
			return err
		}
		booking.BringForward(tx, p)
		pinned, err := settleWhere(tx, p)
		if err != nil {
			return err
		}
		ahead, err := workAhead(tx, poolID)
		if err != nil {
			return err
		}
		var next time.Time
		s, done := borrowSnapshot()
		defer done()
		for range rounds {
			fillSnapshot(s, p)
			s.Paused, s.Pinned, s.Ahead = paused.PausedUntil(), pinned, ahead
			if s.Idle, err = readIdle(tx, s); err != nil {
				return err
			}
			if s.Shares, err = booking.SharesOfWaiting(tx, p); err != nil {
				return err
			}
			result, err := awaitLook(tx, p, plan.Compute(*s, l.Config.Policy, tx.Now()))
			if err != nil {
				return err
			}
			next, out.Withheld = result.Next, result.Withheld
			done, retry, err := performActions(tx, p, result.Actions)
			if err != nil {
				return err
			}
			out.Waitlisted = retry
			if !done {
				break
			}
		}
		jobs, err := tx.Port.CountLiveJobs(poolID)
		if err != nil {
			return err
		}
		tx.FinishTask(g, soonestRetry(next, len(out.Waitlisted)+len(jobs) > 0, tx.Now()))
		return nil
	})
	return out, err
}

// retryWaitlisted is how soon a plan that left somebody waiting runs again:
// whoever was to try their promotion, or to start a job, may have died before doing so.
const retryWaitlisted = time.Minute

func soonestRetry(next time.Time, waits bool, now time.Time) time.Time {
	again := now.Add(retryWaitlisted)
	if waits && (next.IsZero() || again.Before(next)) {
		return again
	}
	return roundToStored(next)
}

// roundToStored rounds up to what can be stored. Cut instead, a plan would run just
// before the instant that it waits for, find nothing to do, and run again.
func roundToStored(t time.Time) time.Time {
	if cut := t.Truncate(time.Microsecond); !cut.Equal(t) {
		return cut.Add(time.Microsecond)
	}
	return t
}

// ChooseOffering returns the source that the machine of a node is asked of: the best by
// price, odds and the time until it is needed, which is when the next reservation
// on its slot begins. It also returns what is learned with that source's boots
// and supply as the pool's.
func chooseOffering(p *txn.PoolTx, n node.Node, now time.Time) (capacity.Offering, learned.Learned) {
	return p.Pool.ChooseOffering(p.Reservations.All(), n, now)
}

// describeOffering says which source a node is asked of, in a pool where there is a choice.
func describeOffering(p *txn.PoolTx, s capacity.Offering) string {
	if len(p.Pool.Alternates) == 0 {
		return ""
	}
	return fmt.Sprintf("asks %s, %s an hour", s.Key(), s.Price)
}

// performActions applies the actions of one plan. It reports whether any changed
// something, and which waitlisted reservations to try again.
func performActions(tx *txn.Tx, p *txn.PoolTx, actions []plan.Action) (changed bool, waitlisted []string, err error) {
	for _, a := range actions {
		if a.Kind == plan.RetryWaitlisted {
			waitlisted = append(waitlisted, a.Subject)
			continue
		}
		journaled := len(tx.Change.Events)
		did, err := performAction(tx, p, a)
		if err == nil {
			err = txn.AttachPlannerDecision(tx, journaled, a)
		}
		if err != nil {
			return false, nil, fmt.Errorf("planning %s of %s: %w", a.Kind, a.Subject, err)
		}
		changed = changed || did
	}
	return changed, waitlisted, nil
}

// performAction commits one action. It returns false when nothing had to change.
func performAction(tx *txn.Tx, p *txn.PoolTx, a plan.Action) (bool, error) {
	switch a.Kind {
	case plan.BootNode:
		return true, requestNode(tx, p, a)
	case plan.AbandonNode, plan.DrainNode, plan.RetireNode:
		return true, actOnNode(tx, p, a)
	case plan.WarmReservation, plan.ReadyReservation, plan.UnreadyReservation, plan.DegradeReservation,
		plan.RestoreReservation, plan.ExpireReservation, plan.FailReservation, plan.MoveReservation:
		return true, actOnReservation(tx, p, a)
	default:
		return actOnAllocation(tx, p, a)
	}
}

func requestNode(tx *txn.Tx, p *txn.PoolTx, a plan.Action) error {
	before, err := tx.Port.Generation(p.Pool.ID, a.Slot)
	if err != nil {
		return fmt.Errorf("counting the slot's nodes: %w", err)
	}
	n := node.New(tx.IDs.New(ids.Node), p.Pool.ID, a.Slot, before+1, tx.Now())
	n.Reason, n.Simulated = a.Reason, p.Pool.Simulated
	n.Offering, _ = chooseOffering(p, n, tx.Now())
	p.PutNode(n)
	next := p.Pool
	_, window := plan.Creates(p.Pool.Pool)
	next.Created = next.Created.Add(1, window, tx.Now())
	p.PutPool(next)
	tx.AddTask(ledger.TaskCreateNode, n.ID, tx.Now())
	tx.AddEvent(ledger.Event{Type: "node." + string(n.State()), Subject: n.ID, PoolID: p.Pool.ID, Reason: a.Reason,
		Message: fmt.Sprintf("for slot %d of %s", a.Slot, p.Pool.Name)})
	return nil
}

func actOnNode(tx *txn.Tx, p *txn.PoolTx, a plan.Action) error {
	n, ok := p.FindNode(a.Subject)
	if !ok {
		return nil
	}
	events := map[plan.Kind]node.Event{plan.AbandonNode: node.Abandon, plan.DrainNode: node.Drain,
		plan.RetireNode: node.Retire}
	reason := a.Reason
	if n.State() == node.Lost && n.Reason != "" {
		reason = n.Reason // why it was lost says more than that it was
	}
	n, err := tx.StepNode(p, n, events[a.Kind], reason, whyEarly(a))
	if err == nil && n.State() == node.Deprovisioning {
		tx.AddTask(ledger.TaskDeleteNode, n.ID, tx.Now())
	}
	switch {
	case a.Kind == plan.DrainNode:
		next := p.Pool
		next.Removed = next.Removed.Add(1, tx.Config.Policy.RemoveWindow, tx.Now())
		p.PutPool(next)
	case a.Reason == plan.ReasonBootTimeout:
		noteFailedBoot(tx, p, n, tx.Config.StockOut)
	}
	return err
}

// whyEarly says why an idle node was not worth keeping; nothing where its timer
// alone ended it.
func whyEarly(a plan.Action) string {
	if a.Reason != plan.ReasonUnlikely || a.Facts.Keep == nil {
		return ""
	}
	return plan.Keep(*a.Facts.Keep).String()
}

// noteFailedBoot notes that a node was asked for and never became ready: its source is asked
// for nothing for a while, twice as long each time in a row. A provider that keeps
// refusing, or keeps making unfit machines, is not asked in a loop that costs money.
func noteFailedBoot(tx *txn.Tx, p *txn.PoolTx, n node.Node, ttl time.Duration) {
	next := p.Pool
	next.Learned = next.Learned.Refused(next.Pool, n.Offering, n.RequestedAt, tx.Now(), ttl)
	p.PutPool(next)
}

// noteUnfit is failed for a machine with a fault of its kind. It reports whether that
// stopped its source now.
func noteUnfit(tx *txn.Tx, p *txn.PoolTx, n node.Node, fault string) bool {
	next, before := p.Pool, p.Pool.Of(p.Pool.Pool, n.Offering).Stopped()
	next.Learned = next.Learned.FailedGate(next.Pool, n.Offering, n.RequestedAt, tx.Now(), tx.Config.StockOut, fault)
	p.PutPool(next)
	return before == "" && next.Of(next.Pool, n.Offering).Stopped() != ""
}

func actOnReservation(tx *txn.Tx, p *txn.PoolTx, a plan.Action) error {
	r, ok := p.FindReservation(a.Subject)
	if !ok {
		return nil
	}
	switch a.Kind {
	case plan.MoveReservation:
		r.Slots = a.Slots
		p.PutReservation(r)
		// Other moves are the planner's own affair: a promise is of GPUs, not of a slot.
		if a.Reason == plan.ReasonShrunk {
			tx.AddEvent(ledger.Event{OrganizationID: r.OrganizationID, Type: "reservation.moved", Subject: r.ID,
				PoolID:  p.Pool.ID,
				Reason:  a.Reason,
				Message: fmt.Sprintf("%s was made smaller, and has another place for it", p.Pool.Name)})
		}
		return nil
	case plan.DegradeReservation, plan.RestoreReservation:
		flagReservation(tx, p, r, a)
		return nil
	}
	events := map[plan.Kind]reservation.Event{
		plan.WarmReservation: reservation.Warm, plan.ReadyReservation: reservation.BecomeReady,
		plan.UnreadyReservation: reservation.LoseNode,
		plan.ExpireReservation:  reservation.Expire, plan.FailReservation: reservation.FailWindow,
	}
	next, err := tx.StepReservation(p, r, events[a.Kind], a.Reason, describeForOwner(tx, p, r, a))
	if err == nil && (!next.Live() || a.Reason == plan.ReasonPaused) {
		booking.MarkIdle(tx, p, r.Slots)
	}
	return err
}

// flagReservation marks a promise as degraded, or as whole again. The reason of a lost place
// is kept with it: the planner heals that one when the place is back.
func flagReservation(tx *txn.Tx, p *txn.PoolTx, r reservation.Reservation, a plan.Action) {
	kind, message := "reservation.degraded",
		"will not be ready at "+ledger.FormatTimeSeen(r.Window.Start, tx.Now())
	switch {
	case a.Kind == plan.RestoreReservation:
		kind, message = "reservation.restored", "has its place again"
		r.Reason = a.Reason
	case a.Reason == plan.ReasonShrunk:
		message = fmt.Sprintf("%s was made smaller, and has no place for it now", p.Pool.Name)
		r.Reason = a.Reason
	}
	r.Degraded = a.Kind == plan.DegradeReservation
	p.PutReservation(r)
	tx.AddEvent(ledger.Event{OrganizationID: r.OrganizationID, Type: kind, Subject: r.ID, PoolID: p.Pool.ID,
		Reason:  a.Reason,
		Message: message})
}

// describeForOwner says in one sentence what a planner's step means for the owner.
func describeForOwner(tx *txn.Tx, p *txn.PoolTx, r reservation.Reservation, a plan.Action) string {
	switch a.Kind {
	case plan.WarmReservation:
		when := "at once"
		if ahead := secondsAhead(tx, r); ahead > 0 {
			when = phrase.Span(ahead) + " ahead of the start"
		}
		return fmt.Sprintf("%s in %s, %s (a boot takes up to %s here)", phrase.Count(r.Shape.GPUs(), "GPU"),
			p.Pool.Name,
			when,
			phrase.Span(p.Pool.AsPlanned(tx.Now()).Boot.P95()))
	case plan.ReadyReservation:
		if r.ReadyAt.IsZero() {
			return fmt.Sprintf("%s warm %s", phrase.Count(r.Shape.GPUs(), "GPU"), describePunctuality(tx, r))
		}
		return phrase.Count(r.Shape.GPUs(), "GPU") +
			" warm again" // it lost a node, or moved, and that is when it was ready first
	case plan.ExpireReservation:
		if r.PartOf != "" {
			return "its window is over, and nobody claimed what was left of " + r.PartOf
		}
		return "nobody came"
	default:
		return ""
	}
}

// secondsAhead is how long a reservation's start is ahead, in seconds.
func secondsAhead(tx *txn.Tx, r reservation.Reservation) time.Duration {
	return r.Window.Start.Sub(tx.Now()).Round(time.Second)
}

// describePunctuality says how well in time a reservation's GPUs are ready. One that was
// made for the moment it was made in cannot be late.
func describePunctuality(tx *txn.Tx, r reservation.Reservation) string {
	ahead := secondsAhead(tx, r)
	switch {
	case ahead >= 0:
		return fmt.Sprintf("%s before they are needed", phrase.Span(ahead))
	case r.Window.Start.After(r.CreatedAt):
		return fmt.Sprintf("%s late", phrase.Span(-ahead))
	default:
		return fmt.Sprintf("%s after they were asked for", phrase.Span(tx.Now().Sub(r.CreatedAt)))
	}
}

func actOnAllocation(tx *txn.Tx, p *txn.PoolTx, a plan.Action) (bool, error) {
	al, ok := p.FindAllocation(a.Subject)
	if !ok {
		return false, nil
	}
	switch a.Kind {
	case plan.MoveAllocation:
		al.Slots = a.Slots
		p.PutAllocation(al)
		return true, nil
	case plan.ActivateAllocation:
		held, free := booking.FreeDevices(p, al)
		if !free {
			return false, nil
		}
		_, err := booking.ActivateAllocation(tx, p, al, held)
		return true, err
	case plan.WarnIdle:
		warnIdle(tx, p, al, a)
		return true, nil
	case plan.ReclaimIdle:
		_, err := booking.EndAllocation(tx, p, al, allocation.Expire, a.Reason,
			"reclaimed: its GPUs did nothing for "+phrase.Span(a.Facts.IdleSeen.Sub(a.Facts.IdleSince)))
		return true, err
	case plan.ExpireAllocation:
		_, err := booking.EndAllocation(tx, p, al, allocation.Expire, a.Reason, "its window ends")
		return true, err
	case plan.FailAllocation:
		_, err := booking.EndAllocation(tx, p, al, allocation.Fail, a.Reason, "a node under it was lost")
		return true, err
	default:
		return false, fmt.Errorf("unknown action %s", a.Kind)
	}
}
