package booking

import (
	"context"
	"fmt"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/tenancy"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// Reserve books a promise, or answers *RefusedError with every blocker. A pool that
// recovers books nothing: ErrRecovering.
func (l Booking) Reserve(ctx context.Context, actor ledger.Actor, req ledger.ReserveRequest) (
	reservation.Reservation, error) {
	var out reservation.Reservation
	if err := req.Check(); err != nil {
		return out, err
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
		out, err = reserveFirst(tx, pools, h, req)
		return err
	})
	return out, err
}

// reserveFirst books in the first pool that accepts.
func reserveFirst(tx *txn.Tx, pools []*txn.PoolTx, h *holding, req ledger.ReserveRequest) (
	reservation.Reservation, error) {
	for _, p := range pools {
		r, err := reserveIn(tx, p, h, req)
		if req.Passed.PassOver(p.Pool.Name, err) {
			continue
		}
		r.Version = p.CommittedVersion(r.ID, r.Version)
		return r, err
	}
	return reservation.Reservation{}, req.Passed.RefusalOfAll()
}

// reserveIn books in a pool. One that recovers promises nothing: its calendar may lack
// what was promised after the backup that it came from.
func reserveIn(tx *txn.Tx, p *txn.PoolTx, h *holding, req ledger.ReserveRequest) (reservation.Reservation, error) {
	if p.Pool.Recovery.Active() {
		return reservation.Reservation{}, fmt.Errorf("pool %s: %w", p.Pool.Name, ledger.ErrRecovering)
	}
	shape, _ := p.Pool.ShapeOf(req.Layout, req.GPUs)
	if req.IsFlexible() {
		found, err := acceptableWindows(tx, p, h, req, 1)
		if err != nil {
			return reservation.Reservation{}, err
		}
		req.Window = found[0].Window
	}
	r, d, err := decideReservation(tx, p, h, newReservation(tx, p, h.org, req, shape))
	if err != nil {
		return r, err
	}
	state, kind := reservation.Booked, ledger.DecisionAdmission
	switch {
	case d.Accepted():
		r.Slots = d.Slots
	case d.OnlyCapacity() && req.Queue:
		state, kind = reservation.Waitlisted, ledger.DecisionWaitlist
	default:
		return r, txn.RefuseRequest(tx, p, h.org.ID, "reservation", d)
	}
	r, err = reservation.New(r, state, tx.Now())
	if err != nil {
		return r, err
	}
	if err := makeWay(tx, p, d); err != nil {
		return r, err
	}
	p.PutReservation(r)
	tx.WakePlanFor(p, r)
	if len(d.Moves)+len(d.DisplacedIDs()) > 0 {
		tx.WakePlan(p.Pool.ID)
	}
	tx.AddEvent(ledger.Event{OrganizationID: h.org.ID, Type: "reservation." + string(state), Subject: r.ID,
		PoolID: p.Pool.ID,
		Reason: r.ReasonCode,
		Message: fmt.Sprintf("%s in %s from %s to %s%s%s", phrase.Count(req.GPUs, "GPU"), p.Pool.Name,
			ledger.FormatTimeSeen(r.Window.Start, tx.Now()), ledger.FormatTimeSeen(r.Window.End, tx.Now()),
			formatChance(r),
			req.Passed.DescribePassed()),
		Decision: d.DecisionRecord(kind)})
	return r, nil
}

// decideReservation admits a reservation or says why not, and sets what it costs.
func decideReservation(tx *txn.Tx, p *txn.PoolTx, h *holding, r reservation.Reservation) (
	reservation.Reservation, txn.Verdict, error) {
	speculative := r.Class == reservation.Speculative
	if speculative {
		if err := readPause(tx, h); err != nil {
			return r, txn.Verdict{}, err
		}
	}
	d, err := admit(tx, p, admission.Request{Class: r.Class, Workload: r.Workload, Shape: r.Shape, Window: r.Window},
		admissionView(tx, p, h, txn.TiersFor(p, r.Window, tx.Now(), tx.Config.Policy)))
	if err != nil {
		return r, d, err
	}
	r.Cost = d.Cost
	if d.Accepted() && speculative {
		d.RefuseFor(refuseTooLate(p, d.Slots, r.Window, tx.Now()))
	}
	return r, d, nil
}

func newReservation(tx *txn.Tx, p *txn.PoolTx, org ledger.Organization, req ledger.ReserveRequest,
	shape capacity.Shape) reservation.Reservation {
	r := reservation.Reservation{
		ID: req.ID, OrganizationID: org.ID, PoolID: p.Pool.ID, Name: ledger.ClipText(req.Name, 80), Class: req.Class,
		Origin: req.Origin,
		MadeBy: req.MadeBy, Workload: req.Workload, Window: req.Window, Shape: shape, ReasonCode: req.ReasonCode,
		Probability: req.Probability, ForJobs: req.ForJobs,
	}
	if r.ID == "" {
		r.ID = tx.IDs.New(ids.Reservation)
	}
	if r.MadeBy == "" {
		r.MadeBy, r.UserID = tx.Actor.KeyID, tx.Actor.UserID
	}
	if tx.Actor.Kind == ledger.AgentKey {
		r.Class, r.Origin = reservation.Speculative, reservation.FromAgent
	}
	if r.Class == "" {
		r.Class = reservation.Guaranteed
	}
	if r.Origin == "" {
		r.Origin = reservation.FromPerson
	}
	return r
}

// Promote gives a waitlisted reservation a place if there is one now. Nothing
// happens when it is not waitlisted any more.
func (l Booking) Promote(ctx context.Context, id string) error {
	return l.InGroup(ctx, ledger.SystemActor("planner"), &ledger.LockHint{Reservation: id}, func(tx *txn.Tx) error {
		r, err := tx.Port.Reservation(ledger.Scope{All: true}, id)
		if err != nil || r.State() != reservation.Waitlisted {
			return ledger.IgnoreMissing(err)
		}
		who, err := askerOf(tx, r)
		if err != nil {
			return err
		}
		h, err := readHoldingOf(tx, r.OrganizationID, who)
		if err != nil {
			return err
		}
		p, err := tx.LockPool(r.PoolID)
		if err != nil {
			return fmt.Errorf("locking pool: %w", err)
		}
		r, ok := p.FindReservation(id)
		if !ok || r.State() != reservation.Waitlisted || p.Pool.Recovery.Active() {
			return nil
		}
		ask := admission.Request{Class: r.Class, Workload: r.Workload, Shape: r.Shape, Window: r.Window.From(tx.Now()),
			Since: r.Window.Start}
		d, err := admit(tx, p, ask, admissionView(tx, p, h, txn.TiersFor(p, r.Window, tx.Now(), tx.Config.Policy)))
		if err != nil || !d.Accepted() {
			return err
		}
		if err = makeWay(tx, p, d); err != nil {
			return err
		}
		r.Slots = d.Slots
		if _, err = tx.StepReservation(p, r, reservation.Promote, "place_found", "a place was found"); err != nil {
			return err
		}
		tx.AttachDecision(d.DecisionRecord(ledger.DecisionPromotion))
		tx.WakePlan(p.Pool.ID)
		return nil
	})
}

// askerOf is for whom a reservation was made, with the caps that hold now.
func askerOf(tx *txn.Tx, r reservation.Reservation) (ledger.Asker, error) {
	if r.Origin == reservation.FromSchedule {
		s, err := tx.Port.Schedule(ledger.Scope{All: true}, r.MadeBy)
		if ledger.IgnoreMissing(err) != nil {
			return ledger.Asker{}, fmt.Errorf("reading schedule: %w", err)
		}
		makers, err := scheduleBounds(tx.Port, s)
		return ledger.Actor{KeyID: r.MadeBy, Makers: makers}.AskerFor(), err
	}
	c, err := tenancy.ReadCredential(tx.Port, r.MadeBy)
	if ledger.IgnoreMissing(err) != nil {
		return ledger.Asker{}, fmt.Errorf("reading key: %w", err)
	}
	who := c.Actor()
	who.KeyID, who.UserID = r.MadeBy, r.UserID
	return who.AskerFor(), nil
}

// scheduleBounds lists the caps that hold for what a schedule books: those of the
// key that made it, and of all that this rests on.
func scheduleBounds(r tenancy.Identities, s ledger.Schedule) ([]ledger.Bound, error) {
	c, err := tenancy.ReadCredential(r, s.MadeBy)
	if ledger.IgnoreMissing(err) != nil {
		return nil, fmt.Errorf("reading the schedule's key: %w", err)
	}
	return c.CapBounds(""), nil
}

// CancelReservation ends a promise of the actor's organization; an agent may
// end only its own.
func (l Booking) CancelReservation(ctx context.Context, actor ledger.Actor, id string) (
	reservation.Reservation, error) {
	return withReservation(ctx, l.Engine, actor, id, func(tx *txn.Tx, p *txn.PoolTx,
		r reservation.Reservation) (reservation.Reservation, error) {
		next, err := tx.StepReservation(p, r, reservation.Cancel, "asked", "cancelled by its owner")
		if err != nil {
			return r, &ledger.StateError{Subject: r.ID, State: string(r.State()), Asked: "cancel it"}
		}
		MarkIdle(tx, p, r.Slots)
		return next, cancelParts(tx, p, r)
	})
}

// cancelParts cancels what jobs have left of a reservation that is cancelled, in rows of its own.
func cancelParts(tx *txn.Tx, p *txn.PoolTx, whole reservation.Reservation) error {
	for part := range p.Reservations.All() {
		if part.PartOf != whole.ID || part.ID == whole.ID || !part.Live() {
			continue
		}
		_, err := tx.StepReservation(p, part, reservation.Cancel, "asked", "cancelled with "+whole.ID)
		if err != nil {
			return err
		}
		MarkIdle(tx, p, part.Slots)
	}
	return nil
}

// withReservation locks the pool of a visible reservation and runs fn on it.
func withReservation(ctx context.Context, l *txn.Engine, actor ledger.Actor, id string,
	fn func(*txn.Tx, *txn.PoolTx, reservation.Reservation) (reservation.Reservation, error),
) (reservation.Reservation, error) {
	var out reservation.Reservation
	err := l.InGroup(ctx, actor, &ledger.LockHint{Reservation: id}, func(tx *txn.Tx) error {
		p, r, err := findReservation(tx, actor, id)
		if err != nil {
			return err
		}
		if p != nil {
			tx.WakePlan(p.Pool.ID)
		}
		if out, err = fn(tx, p, r); err == nil {
			out.Version = p.CommittedVersion(id, out.Version)
		}
		return err
	})
	return out, err
}

// FindReservation returns a visible reservation with its locked pool, or, when it
// is over, without.
func findReservation(tx *txn.Tx, actor ledger.Actor, id string) (*txn.PoolTx, reservation.Reservation, error) {
	hidden := func(r reservation.Reservation) bool {
		return !actor.Scope().All && r.OrganizationID != actor.OrganizationID || actor.Kind == ledger.AgentKey &&
			r.MadeBy != actor.KeyID
	}
	for _, p := range tx.Pools {
		if r, ok := p.FindReservation(id); ok {
			if hidden(r) {
				return nil, r, fmt.Errorf("reading reservation %s: %w", id, ledger.ErrNotFound)
			}
			return p, r, nil
		}
	}
	seen, err := tx.Port.Reservation(actor.Scope(), id)
	if err != nil {
		return nil, seen, err
	}
	if hidden(seen) {
		return nil, seen, fmt.Errorf("reading reservation %s: %w", id, ledger.ErrNotFound)
	}
	if !seen.Live() {
		return nil, seen, nil
	}
	p, err := tx.LockPool(seen.PoolID)
	if err != nil {
		return nil, seen, fmt.Errorf("locking pool: %w", err)
	}
	if r, ok := p.FindReservation(id); ok {
		return p, r, nil
	}
	seen, err = tx.Port.Reservation(actor.Scope(), id) // it ended meanwhile
	return nil, seen, err
}

func formatChance(r reservation.Reservation) string {
	if r.Probability == 0 {
		return ""
	}
	return fmt.Sprintf(", chance %.0f %%", 100*r.Probability)
}
