package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/internal/ids"
)

// MaxGPUs is the largest number of GPUs one request may name.
const MaxGPUs = 100_000

// ReserveRequest asks for a promise.
type ReserveRequest struct {
	Pool        string // id or name; empty: the cheapest of Model that meets Needs and can serve
	Model       string
	Needs       capacity.Needs
	GPUs        int             // 0: those of Layout
	Layout      capacity.Layout // how they are to lie on nodes; zero: on as few as can be
	Window      calendar.Interval
	Range       calendar.TimeRange // instead of Window: the earliest window in it that is accepted
	Workload    capacity.Workload  // empty: online
	Class       reservation.Class  // empty: guaranteed for people, speculative for agents
	Name        string
	Queue       bool // wait for a place when the pool is full
	ReasonCode  string
	Probability float64

	id     string             // derived, for what a schedule materialises
	source reservation.Origin // empty: by the actor
	madeBy string
	passed passedPools // by the pools that were tried before
}

func (r *ReserveRequest) checkRequest() (err error) {
	if r.GPUs, err = layOut(r.GPUs, r.Layout); err != nil {
		return err
	}
	if err := r.poolNeeds().checkNeeds(); err != nil {
		return err
	}
	switch {
	case r.isFlexible():
		return r.checkRange()
	case !r.Window.Valid():
		return &InvalidError{Field: "end", Rule: "must be after start"}
	case r.Probability < 0 || r.Probability > 1 || r.Probability != r.Probability:
		return &InvalidError{Field: "probability", Rule: "must be between 0 and 1"}
	}
	return nil
}

func (r ReserveRequest) poolNeeds() poolNeeds {
	return poolNeeds{pool: r.Pool, model: r.Model, needs: r.Needs}
}

// isFlexible reports whether the request leaves the window open.
func (r ReserveRequest) isFlexible() bool { return r.Range != (calendar.TimeRange{}) }

func (r ReserveRequest) checkRange() error {
	if r.Window != (calendar.Interval{}) {
		return &InvalidError{Field: "start", Rule: "must be left out with a time range"}
	}
	check := r.Range
	if check.StartNotEarlierThan.IsZero() {
		check.StartNotEarlierThan = time.Unix(0, 0) // it means now
	}
	if wrong, ok := errors.AsType[*calendar.RangeError](check.Check()); ok {
		return &InvalidError{Field: rangeFields[wrong.Field], Rule: wrong.Rule}
	}
	return nil
}

// rangeFields are the fields of a range as requests name them.
var rangeFields = map[string]string{
	"start_time_not_earlier_than": "start_time_not_earlier_than",
	"start_time_not_later_than":   "start_time_not_later_than",
	"end_time_not_earlier_than":   "end_time_not_earlier_than", "end_time_not_later_than": "end_time_not_later_than",
	"min_duration": "min_duration_seconds", "max_duration": "max_duration_seconds",
}

// Reserve books a promise, or answers *RefusedError with every blocker. A pool that
// recovers books nothing: ErrRecovering.
func (l Booking) Reserve(ctx context.Context, actor Actor, req ReserveRequest) (reservation.Reservation, error) {
	var out reservation.Reservation
	if err := req.checkRequest(); err != nil {
		return out, err
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
		out, err = reserveFirst(tx, pools, h, req)
		return err
	})
	return out, err
}

// lockHint names what the request will lock, if it names it.
func (r ReserveRequest) lockHint() *LockHint {
	if r.Pool == "" {
		return nil
	}
	return &LockHint{Pool: r.Pool}
}

// reserveFirst books in the first pool that accepts.
func reserveFirst(tx *groupTx, pools []*poolTx, h *holding, req ReserveRequest) (reservation.Reservation, error) {
	for _, p := range pools {
		r, err := reserveIn(tx, p, h, req)
		if req.passed.passOver(p, err) {
			continue
		}
		r.Version = p.committedVersion(r.ID, r.Version)
		return r, err
	}
	return reservation.Reservation{}, req.passed.refusalOfAll()
}

// reserveIn books in a pool. One that recovers promises nothing: its calendar may lack
// what was promised after the backup that it came from.
func reserveIn(tx *groupTx, p *poolTx, h *holding, req ReserveRequest) (reservation.Reservation, error) {
	if p.Pool.Recovery.Active() {
		return reservation.Reservation{}, fmt.Errorf("pool %s: %w", p.Pool.Name, ErrRecovering)
	}
	shape, _ := req.Layout.Shape(req.GPUs, p.Pool.PerNode)
	if req.isFlexible() {
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
	state, kind := reservation.Booked, DecisionAdmission
	switch {
	case d.Accepted():
		r.Slots = d.Slots
	case d.OnlyCapacity() && req.Queue:
		state, kind = reservation.Waitlisted, DecisionWaitlist
	default:
		return r, refuseRequest(tx, p, h.org.ID, "reservation", d)
	}
	r, err = reservation.New(r, state, tx.now())
	if err != nil {
		return r, err
	}
	if err := makeWay(tx, p, d); err != nil {
		return r, err
	}
	p.putReservation(r)
	tx.wakePlan(p.Pool.ID)
	tx.addEvent(Event{OrganizationID: h.org.ID, Type: "reservation." + string(state), Subject: r.ID, PoolID: p.Pool.ID,
		Reason: r.ReasonCode,
		Message: fmt.Sprintf("%s in %s from %s to %s%s%s", phrase.Count(req.GPUs, "GPU"), p.Pool.Name,
			formatTime(r.Window.Start), formatTime(r.Window.End), formatChance(r), req.passed.describePassed()),
		Decision: d.decisionRecord(kind)})
	return r, nil
}

// decideReservation admits a reservation or says why not, and sets what it costs.
func decideReservation(tx *groupTx, p *poolTx, h *holding, r reservation.Reservation) (reservation.Reservation, verdict, error) {
	guess := r.Class == reservation.Speculative
	if guess {
		if err := readPause(tx, h); err != nil {
			return r, verdict{}, err
		}
	}
	d, err := admit(tx, p, admission.Request{Class: r.Class, Workload: r.Workload, Shape: r.Shape, Window: r.Window},
		admissionView(tx, p, h, tiersFor(p, r.Window, tx.now(), tx.cfg.Policy)))
	if err != nil {
		return r, d, err
	}
	r.Cost = d.Cost
	if d.Accepted() && guess {
		d.refuseFor(refuseTooLate(p, d.Slots, r.Window, tx.now()))
	}
	return r, d, nil
}

func newReservation(tx *groupTx, p *poolTx, org Organization, req ReserveRequest,
	shape capacity.Shape) reservation.Reservation {
	r := reservation.Reservation{
		ID: req.id, OrganizationID: org.ID, PoolID: p.Pool.ID, Name: clipText(req.Name, 80), Class: req.Class,
		Origin: req.source,
		MadeBy: req.madeBy, Workload: req.Workload, Window: req.Window, Shape: shape, ReasonCode: req.ReasonCode,
		Probability: req.Probability,
	}
	if r.ID == "" {
		r.ID = tx.ids.New(ids.Reservation)
	}
	if r.MadeBy == "" {
		r.MadeBy, r.UserID = tx.actor.KeyID, tx.actor.UserID
	}
	if tx.actor.Kind == AgentKey {
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
	return l.inOwnTx(ctx, SystemActor("planner"), func(tx *groupTx) error {
		r, err := tx.port.Reservation(Scope{All: true}, id)
		if err != nil || r.State() != reservation.Waitlisted {
			return ignoreMissing(err)
		}
		who, err := askerOf(tx, r)
		if err != nil {
			return err
		}
		h, err := readHoldingOf(tx, r.OrganizationID, who)
		if err != nil {
			return err
		}
		p, err := tx.lockPool(r.PoolID)
		if err != nil {
			return fmt.Errorf("locking pool: %w", err)
		}
		r, ok := p.findReservation(id)
		if !ok || r.State() != reservation.Waitlisted || p.Pool.Recovery.Active() {
			return nil
		}
		ask := admission.Request{Class: r.Class, Workload: r.Workload, Shape: r.Shape, Window: r.Window.From(tx.now()),
			Since: r.Window.Start}
		d, err := admit(tx, p, ask, admissionView(tx, p, h, tiersFor(p, r.Window, tx.now(), tx.cfg.Policy)))
		if err != nil || !d.Accepted() {
			return err
		}
		if err = makeWay(tx, p, d); err != nil {
			return err
		}
		r.Slots = d.Slots
		if _, err = tx.stepReservation(p, r, reservation.Promote, "place_found", "a place was found"); err != nil {
			return err
		}
		tx.attachDecision(d.decisionRecord(DecisionPromotion))
		tx.wakePlan(p.Pool.ID)
		return nil
	})
}

// askerOf is for whom a reservation was made, with the caps that hold now.
func askerOf(tx *groupTx, r reservation.Reservation) (asker, error) {
	if r.Origin == reservation.FromSchedule {
		s, err := tx.port.Schedule(Scope{All: true}, r.MadeBy)
		if ignoreMissing(err) != nil {
			return asker{}, fmt.Errorf("reading schedule: %w", err)
		}
		makers, err := scheduleBounds(tx.port, s)
		return Actor{KeyID: r.MadeBy, Makers: makers}.askerFor(), err
	}
	c, err := readCredential(tx.port, r.MadeBy)
	if ignoreMissing(err) != nil {
		return asker{}, fmt.Errorf("reading key: %w", err)
	}
	who := c.Actor()
	who.KeyID, who.UserID = r.MadeBy, r.UserID
	return who.askerFor(), nil
}

// scheduleBounds lists the caps that hold for what a schedule books: those of the
// key that made it, and of all that this rests on.
func scheduleBounds(r identities, s Schedule) ([]Bound, error) {
	c, err := readCredential(r, s.MadeBy)
	if ignoreMissing(err) != nil {
		return nil, fmt.Errorf("reading the schedule's key: %w", err)
	}
	return c.capBounds(""), nil
}

// CancelReservation ends a promise of the actor's organization; an agent may
// end only its own.
func (l Booking) CancelReservation(ctx context.Context, actor Actor, id string) (reservation.Reservation, error) {
	return withReservation(ctx, l.engine, actor, id, func(tx *groupTx, p *poolTx,
		r reservation.Reservation) (reservation.Reservation, error) {
		next, err := tx.stepReservation(p, r, reservation.Cancel, "asked", "cancelled by its owner")
		if err != nil {
			return r, &StateError{Subject: r.ID, State: string(r.State()), Asked: "cancel it"}
		}
		markIdle(tx, p, r.Slots)
		return next, nil
	})
}

// withReservation locks the pool of a visible reservation and runs fn on it.
func withReservation(ctx context.Context, l *engine, actor Actor, id string,
	fn func(*groupTx, *poolTx, reservation.Reservation) (reservation.Reservation, error),
) (reservation.Reservation, error) {
	var out reservation.Reservation
	err := l.inGroup(ctx, actor, &LockHint{Reservation: id}, func(tx *groupTx) error {
		p, r, err := findReservation(tx, actor, id)
		if err != nil {
			return err
		}
		if p != nil {
			tx.wakePlan(p.Pool.ID)
		}
		if out, err = fn(tx, p, r); err == nil {
			out.Version = p.committedVersion(id, out.Version)
		}
		return err
	})
	return out, err
}

// findReservation returns a visible reservation with its locked pool, or, when it
// is over, without.
func findReservation(tx *groupTx, actor Actor, id string) (*poolTx, reservation.Reservation, error) {
	hidden := func(r reservation.Reservation) bool {
		return !actor.Scope().All && r.OrganizationID != actor.OrganizationID || actor.Kind == AgentKey &&
			r.MadeBy != actor.KeyID
	}
	for _, p := range tx.pools {
		if r, ok := p.findReservation(id); ok {
			if hidden(r) {
				return nil, r, fmt.Errorf("reading reservation %s: %w", id, ErrNotFound)
			}
			return p, r, nil
		}
	}
	seen, err := tx.port.Reservation(actor.Scope(), id)
	if err != nil {
		return nil, seen, err
	}
	if hidden(seen) {
		return nil, seen, fmt.Errorf("reading reservation %s: %w", id, ErrNotFound)
	}
	if !seen.Live() {
		return nil, seen, nil
	}
	p, err := tx.lockPool(seen.PoolID)
	if err != nil {
		return nil, seen, fmt.Errorf("locking pool: %w", err)
	}
	if r, ok := p.findReservation(id); ok {
		return p, r, nil
	}
	seen, err = tx.port.Reservation(actor.Scope(), id) // it ended meanwhile
	return nil, seen, err
}

func ignoreMissing(err error) error {
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// formatTime renders a time for a message, always in UTC.
func formatTime(t time.Time) string { return t.UTC().Format("Mon 15:04:05") + "Z" }

func formatChance(r reservation.Reservation) string {
	if r.Probability == 0 {
		return ""
	}
	return fmt.Sprintf(", chance %.0f %%", 100*r.Probability)
}
