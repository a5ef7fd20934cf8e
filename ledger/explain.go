package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/core/reservation"
)

// Explanation is why something is as it is, what stands in its way, and what
// comes next.
type Explanation struct {
	At        time.Time
	Kind      string // reservation, allocation, node or request
	Subject   string // empty: a request that was only asked about
	State     string
	Reason    string // a code
	Summary   string // one sentence for people
	PoolID    string
	Since     time.Time
	Degraded  bool
	Blockers  []Blocker
	Refused   *RefusedError     // of what admission refuses now, else nil
	Instead   []admission.Offer // where what gave way would have had a place, then
	Wait      *plan.Estimate    // of what waits, else nil
	Next      []Step            // in the order of their times
	Decisions []Event           // newest first
	Effect    Effect            // of a request that was only asked about
}

// Blocker is one thing that stands in the way, beside what admission refuses.
type Blocker struct {
	Code     string
	Message  string
	Evidence []string // ids and numbers that were looked at
	Fix      string   // a command; may be empty
	ClearsAt *Band    // nil: time alone does not clear it
}

// Band is an instant that is not known: it is earlier with a chance of 10, 50
// and 90 percent.
type Band struct{ P10, P50, P90 time.Time }

// Step is something that happens at a time unless something else does before.
type Step struct {
	Code    string
	At      time.Time
	Message string
}

// recentDecisions is how many decisions an explanation tells of.
const recentDecisions = 20

// explained is what the explanations of stored things have in common.
type explained struct {
	Explanation
	state   PoolState
	cfg     Config
	outlook *plan.Outlook
	waits   *Waits
	// troubles are what fails again and again.
	troubles Troubles
	// operator: who asks sees what providers say. hopeless: time alone helps not.
	operator, hopeless bool
	expires            bool // a waitlisted reservation is likely to, before it has a place
}

// CodeRecovering is the blocker of a pool that only reconciles.
const CodeRecovering = "recovering"

func beginExplanation(l *engine, r Reader, actor Actor, subject, poolID string) (*explained, error) {
	state, err := r.PoolState(poolID)
	if err != nil {
		return nil, fmt.Errorf("reading pool: %w", err)
	}
	e := &explained{state: state, cfg: l.cfg, waits: Reporting{l}.Waits(r), operator: actor.Role == Operator}
	e.At, e.Subject, e.PoolID = r.Now(), subject, poolID
	if e.outlook, err = e.waits.foreseePool(state); err != nil {
		return nil, err
	}
	e.state.Pool = state.Pool.asPlanned(e.At)
	if e.troubles, err = readTroubles(r); err != nil {
		return nil, err
	}
	e.Decisions, err = r.Decisions(actor.Scope(), DecisionFilter{Subject: subject}, recentDecisions)
	return e, err
}

// ClearsAt says when what is full is likely to have room: as early as the wait
// says, or when the calendar promises it.
func (e Explanation) ClearsAt() *Band {
	if e.Wait == nil {
		return nil
	}
	return &Band{P10: e.At.Add(e.Wait.P10), P50: e.At.Add(e.Wait.P50), P90: e.At.Add(e.Wait.P90)}
}

// describeNextSteps tells what the planner has next for the subject.
func (e *explained) describeNextSteps(messages map[string]string) {
	for _, s := range e.outlook.Next(e.Subject) {
		if message, ok := messages[s.Code]; ok {
			if s.Subject != "" {
				message = s.Subject + " " + message
			}
			e.Next = append(e.Next, Step{Code: s.Code, At: s.At, Message: message})
		}
	}
}

func (e *explained) finishExplanation() Explanation {
	if e.hopeless {
		e.Wait = nil
	}
	for i, b := range e.Blockers { // where no time is known, they are what the wait is estimated from
		if b.ClearsAt == nil {
			e.Blockers[i].ClearsAt = e.ClearsAt()
		}
	}
	return e.Explanation
}

// ExplainReservation explains a reservation that the actor may see; an agent
// sees its own.
func (l Reporting) ExplainReservation(ctx context.Context, actor Actor, id string) (Explanation, error) {
	var e *explained
	var r reservation.Reservation
	err := l.store.Read(ctx, func(rd Reader) (err error) {
		if r, err = rd.Reservation(actor.Scope(), id); err != nil {
			return err
		}
		if actor.Kind == AgentKey && r.MadeBy != actor.KeyID {
			return ErrNotFound
		}
		if e, err = beginExplanation(l.engine, rd, actor, id, r.PoolID); err != nil {
			return err
		}
		if e.expires, err = e.waits.Expires(r); err != nil {
			return err
		}
		e.Wait, err = e.waits.Reservation(r)
		return err
	})
	if err != nil {
		return Explanation{}, err
	}
	e.explainReservation(r)
	if e.Instead, err = counterOffers(r, e.Decisions); err != nil {
		return Explanation{}, err
	}
	if r.State() == reservation.Waitlisted {
		if e.Refused, err = refusedNow(ctx, l.engine, r); err != nil {
			return Explanation{}, err
		}
	}
	return e.finishExplanation(), nil
}

// counterOffers finds what a displaced reservation was offered by the decision
// that it gave way to. The rest of that decision is not its owner's to know.
func counterOffers(r reservation.Reservation, decisions []Event) ([]admission.Offer, error) {
	for _, e := range decisions {
		d, err := ReadDecision(e.Decision)
		if err != nil {
			return nil, err
		}
		if d.Kind != DecisionDisplacement || d.Record == nil {
			continue
		}
		record, err := admission.DecodeRecord(d.Record)
		if err != nil {
			return nil, fmt.Errorf("reading what %s gave way to: %w", r.ID, err)
		}
		for _, gone := range record.Decision.Displaced {
			if gone.ID == r.ID && gone.Offer != nil {
				return []admission.Offer{*gone.Offer}, nil
			}
		}
	}
	return nil, nil
}

// refusedNow asks what a waitlisted reservation would be told if it were made
// now; nil means that there is a place, which the planner is about to give it.
func refusedNow(ctx context.Context, l *engine, r reservation.Reservation) (*RefusedError, error) {
	owner := Actor{KeyID: r.MadeBy, Kind: PersonKey, OrganizationID: r.OrganizationID, Role: Member, Via: "explain"}
	_, _, err := Previews{l}.DryRun(ctx, owner, func(ctx context.Context, l *Ledger) (int, []byte, error) {
		window := r.Window
		if now := readNow(ctx, l.engine); window.Start.Before(now) {
			window.Start = now
		}
		_, err := l.Reserve(ctx, owner, ReserveRequest{Pool: r.PoolID, GPUs: r.Shape.GPUs(), Window: window,
			Layout: capacity.Layout{Nodes: r.Shape.Nodes, PerNode: r.Shape.PerNode}, Class: r.Class})
		return 0, nil, err
	})
	var refused *RefusedError
	if errors.As(err, &refused) {
		return refused, nil
	}
	return nil, err
}

// readNow is the time of the transaction that the ledger works in, or of a new one.
func readNow(ctx context.Context, l *engine) time.Time {
	var now time.Time
	_ = l.store.Read(ctx, func(r Reader) error { // reading the time of a transaction does not fail by itself
		now = r.Now()
		return nil
	})
	return now
}

func (e *explained) explainReservation(r reservation.Reservation) {
	e.Kind, e.State, e.Reason, e.Degraded, e.Since = "reservation", string(r.State()), r.Reason, r.Degraded, r.CreatedAt
	what := fmt.Sprintf("%s in %s from %s to %s", phrase.Count(r.Shape.GPUs(), "GPU"), e.state.Pool.Name,
		formatTime(r.Window.Start), formatTime(r.Window.End))
	boots := e.state.Pool.Boot
	switch r.State() {
	case reservation.Waitlisted:
		e.Summary = what + ": no place yet"
		if e.expires {
			e.Summary += ", and none is expected before it expires"
		}
	case reservation.Booked:
		e.Summary = what + ": " + e.describePlace(r)
	case reservation.Warming:
		e.Since, e.Summary = r.WarmedAt, what+": its nodes are made ready"
		if e.lacksPlace(r.ID) {
			e.Summary = what + ": " + e.whyNoPlace()
		}
	case reservation.Ready:
		e.Since, e.Summary = r.ReadyAt, what+": warm, waiting to be claimed"
	default:
		e.Since, e.Summary = r.EndedAt, fmt.Sprintf("%s: %s", what, r.State())
		return
	}
	e.addObstacles()
	noShow := "it ends if nobody has claimed it"
	if r.State() != reservation.Ready {
		noShow = "it ends if nobody has claimed it, and not before it was ready for so long"
	}
	e.describeNextSteps(map[string]string{
		plan.StepGivesUp: "it expires if no place was found",
		plan.StepWarm: fmt.Sprintf("warm-up begins: a boot takes up to %s here, and %s are added",
			phrase.Span(boots.P95()), phrase.Length(e.cfg.Policy.Guard)),
		plan.StepStart: "its time begins", plan.StepNoShow: noShow, plan.StepEnd: "its time is over",
	})
}

// describePlace says of a booked reservation whether it has its place. That is the plan's
// to say: what the planner flagged may be healed, or found out, only now.
func (e *explained) describePlace(r reservation.Reservation) string {
	switch {
	case e.lacksPlace(r.ID):
		return e.whyNoPlace()
	case r.Degraded && r.Reason == ReasonQuotaReduced:
		e.Blockers = append(e.Blockers, Blocker{Code: ReasonQuotaReduced,
			Message: "the quota was reduced, and no longer allows it; its place is kept"})
		return "has its place, beyond the quota; nothing is warm yet"
	default:
		return "has its place; nothing is warm yet"
	}
}

// lacksPlace reports whether a promise has no place in the pool any more.
func (e *explained) lacksPlace(id string) bool { return slices.Contains(e.outlook.Homeless(), id) }

// whyNoPlace says why a promise has no place.
func (e *explained) whyNoPlace() string {
	return e.state.Pool.Name + " was made smaller, and has no place for it now"
}

// ExplainAllocation explains an allocation that the actor may see.
func (l Reporting) ExplainAllocation(ctx context.Context, actor Actor, id string) (Explanation, error) {
	var e *explained
	err := l.store.Read(ctx, func(rd Reader) error {
		a, err := rd.Allocation(actor.Scope(), id)
		if err != nil {
			return err
		}
		if e, err = beginExplanation(l.engine, rd, actor, id, a.PoolID); err != nil {
			return err
		}
		e.explainAllocation(a)
		e.Wait, err = e.waits.Allocation(a)
		return err
	})
	if err != nil {
		return Explanation{}, err
	}
	return e.finishExplanation(), nil
}

func (e *explained) explainAllocation(a allocation.Allocation) {
	e.Kind, e.State, e.Reason, e.Since = "allocation", string(a.State()), a.Reason, a.RequestedAt
	what := fmt.Sprintf("%s in %s", phrase.Count(a.Shape.GPUs(), "GPU"), e.state.Pool.Name)
	switch a.State() {
	case allocation.Pending:
		e.Summary = what + ": has its place; waits for nodes"
		if e.lacksPlace(a.ID) {
			e.Summary = what + ": " + e.whyNoPlace()
		}
		e.addObstacles()
	case allocation.Active:
		e.Since, e.Summary = a.ActiveAt, what+": in use"
	case allocation.Releasing:
		e.Summary = what + ": being given back"
	default:
		e.Since, e.Summary = a.EndedAt, fmt.Sprintf("%s: %s", what, a.State())
	}
	e.describeNextSteps(map[string]string{plan.StepGivesUp: "it expires if the nodes are not there by then",
		plan.StepLease: "its lease ends"})
}

// blockByRecovery stands in the way of everything; time alone does not clear it, so
// that no wait is estimated.
func (e *explained) blockByRecovery() {
	b := Blocker{
		Code:     CodeRecovering,
		Message:  "the pool only reconciles until an operator confirms what was found at its provider",
		Evidence: []string{"since " + formatTime(e.state.Pool.Recovery.Since)},
	}
	if e.operator {
		b.Evidence = append(b.Evidence, e.state.Pool.Recovery.Reason)
		b.Fix = "forewarm recovery show"
	}
	e.Blockers, e.hopeless = append(e.Blockers, b), true
}

// ExplainRequest tells what would become of a request: its effect, or every
// blocker and what would be accepted instead.
func (l Reporting) ExplainRequest(ctx context.Context, actor Actor, op Operation) (Explanation, error) {
	e := Explanation{Kind: "request", State: "accepted", Summary: "it would get its GPUs"}
	effect, _, err := Previews{l.engine}.DryRun(ctx, actor, op)
	if errors.As(err, &e.Refused) {
		e.State, e.Summary = "refused", e.Refused.Error()
		return e, l.store.Read(ctx, func(r Reader) error {
			e.At = r.Now()
			return nil
		})
	}
	if err != nil {
		return e, err
	}
	e.At, e.Effect, e.Wait = effect.At, effect, effect.Wait
	if effect.Wait != nil {
		e.State, e.Summary = "waits", "it would get a place, and wait for its GPUs"
	}
	return e, nil
}
