package report

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
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/booking"
	"github.com/forewarm/forewarm/ledger/internal/fleet"
	"github.com/forewarm/forewarm/ledger/internal/outlook"
	"github.com/forewarm/forewarm/ledger/internal/preview"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// recentDecisions is how many decisions an explanation tells of.
const recentDecisions = 20

// explained is what the explanations of stored things have in common.
type explained struct {
	ledger.Explanation
	state   ledger.PoolState
	cfg     ledger.Config
	outlook *plan.Outlook
	waits   *outlook.Waits
	// troubles are what fails again and again.
	troubles ledger.Troubles
	// operator: who asks sees what providers say. hopeless: time alone helps not.
	operator, hopeless bool
	expires            bool            // a waitlisted reservation is likely to, before it has a place
	noWorker           *ledger.Blocker // what it means that no worker is there; nil: one is
}

func beginExplanation(l *txn.Engine, r ledger.Reader, actor ledger.Actor, subject, poolID string) (*explained, error) {
	state, err := r.LiveState(poolID)
	if err != nil {
		return nil, fmt.Errorf("reading pool: %w", err)
	}
	e := &explained{state: state, cfg: l.Config, waits: Reporting{Engine: l}.Waits(r),
		operator: actor.Role == ledger.Operator}
	e.At, e.Subject, e.PoolID = r.Now(), subject, poolID
	if e.outlook, err = e.waits.ForeseePool(state); err != nil {
		return nil, err
	}
	e.state.Pool = state.Pool.AsPlanned(e.At)
	if e.troubles, err = fleet.ReadTroubles(r); err != nil {
		return nil, err
	}
	if e.noWorker, err = e.waits.MissingWorker(e.operator, state.Pool.CreatedAt); err != nil {
		return nil, err
	}
	e.Decisions, err = r.Decisions(actor.Scope(), ledger.DecisionFilter{Subject: subject}, recentDecisions)
	return e, err
}

// describeNextSteps tells what the planner has next for the subject: nothing, if what it
// waits for is a worker.
func (e *explained) describeNextSteps(messages map[string]string) {
	if slices.ContainsFunc(e.Blockers, func(b ledger.Blocker) bool { return b.Code == ledger.CodeNoWorker }) {
		return
	}
	for _, s := range e.outlook.Next(e.Subject) {
		if message, ok := messages[s.Code]; ok {
			if s.Subject != "" {
				message = s.Subject + " " + message
			}
			e.Next = append(e.Next, ledger.Step{Code: s.Code, At: s.At, Message: message})
		}
	}
}

func (e *explained) finishExplanation() ledger.Explanation {
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
func (l Reporting) ExplainReservation(ctx context.Context, actor ledger.Actor, id string) (ledger.Explanation, error) {
	var e *explained
	var r reservation.Reservation
	err := l.Store.Read(ctx, func(rd ledger.Reader) (err error) {
		if r, err = rd.Reservation(actor.Scope(), id); err != nil {
			return err
		}
		if actor.Kind == ledger.AgentKey && r.MadeBy != actor.KeyID {
			return ledger.ErrNotFound
		}
		if e, err = beginExplanation(l.Engine, rd, actor, id, r.PoolID); err != nil {
			return err
		}
		if e.expires, err = e.waits.Expires(r); err != nil {
			return err
		}
		e.Wait, err = e.waits.Reservation(r)
		return err
	})
	if err != nil {
		return ledger.Explanation{}, err
	}
	e.explainReservation(r)
	if e.Instead, err = counterOffers(r, e.Decisions); err != nil {
		return ledger.Explanation{}, err
	}
	if r.State() == reservation.Waitlisted {
		if e.Refused, err = refusedNow(ctx, l.Engine, r); err != nil {
			return ledger.Explanation{}, err
		}
	}
	return e.finishExplanation(), nil
}

// counterOffers finds what a displaced reservation was offered by the decision
// that it gave way to. The rest of that decision is not its owner's to know.
func counterOffers(r reservation.Reservation, decisions []ledger.Event) ([]admission.Offer, error) {
	for _, e := range decisions {
		d, err := ledger.ReadDecision(e.Decision)
		if err != nil {
			return nil, err
		}
		if d.Kind != ledger.DecisionDisplacement || d.Record == nil {
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
func refusedNow(ctx context.Context, l *txn.Engine, r reservation.Reservation) (*ledger.RefusedError, error) {
	owner := ledger.Actor{KeyID: r.MadeBy, Kind: ledger.PersonKey, OrganizationID: r.OrganizationID,
		Role: ledger.Member, Via: "explain"}
	_, _, err := preview.Previews{Engine: l}.DryRun(ctx, owner,
		func(ctx context.Context, l *txn.Engine) (int, []byte, error) {
			window := r.Window
			if now := readNow(ctx, l); window.Start.Before(now) {
				window.Start = now
			}
			_, err := booking.Booking{Engine: l}.Reserve(ctx, owner,
				ledger.ReserveRequest{Pool: r.PoolID, GPUs: r.Shape.GPUs(), Window: window,
					Layout: capacity.Layout{Nodes: r.Shape.Nodes, PerNode: r.Shape.PerNode}, Class: r.Class})
			return 0, nil, err
		})
	var refused *ledger.RefusedError
	if errors.As(err, &refused) {
		return refused, nil
	}
	return nil, err
}

// readNow is the time of the transaction that the ledger works in, or of a new one.
func readNow(ctx context.Context, l *txn.Engine) time.Time {
	var now time.Time
	_ = l.Store.Read(ctx, func(r ledger.Reader) error { // reading the time of a transaction does not fail by itself
		now = r.Now()
		return nil
	})
	return now
}

func (e *explained) explainReservation(r reservation.Reservation) {
	e.Kind, e.State, e.Reason, e.Degraded, e.Since = "reservation", string(r.State()), r.Reason, r.Degraded, r.CreatedAt
	what := fmt.Sprintf("%s in %s from %s to %s", phrase.Count(r.Shape.GPUs(), "GPU"), e.state.Pool.Name,
		ledger.FormatTimeSeen(r.Window.Start, e.At), ledger.FormatTimeSeen(r.Window.End, e.At))
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
	noShow := "it ends if nobody has claimed it by then"
	if r.State() != reservation.Ready {
		noShow += "; if its nodes come late, " + phrase.Length(e.state.Pool.Timers.WarmHold) + " after they are ready"
	}
	e.describeNextSteps(map[string]string{
		plan.StepGivesUp: "it expires if no place was found",
		plan.StepWarm: fmt.Sprintf("warm-up begins: a boot takes up to %s here, and %s are added",
			phrase.Span(boots.P95()), phrase.Length(e.cfg.Policy.Guard)),
		plan.StepStart: "its window begins", plan.StepNoShow: noShow, plan.StepEnd: "its window ends",
	})
}

// describePlace says of a booked reservation whether it has its place. That is the plan's
// to say: what the planner flagged may be healed, or found out, only now.
func (e *explained) describePlace(r reservation.Reservation) string {
	switch {
	case e.lacksPlace(r.ID):
		return e.whyNoPlace()
	case r.Degraded && r.Reason == ledger.ReasonQuotaReduced:
		e.Blockers = append(e.Blockers, ledger.Blocker{Code: ledger.ReasonQuotaReduced,
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
func (l Reporting) ExplainAllocation(ctx context.Context, actor ledger.Actor, id string) (ledger.Explanation, error) {
	var e *explained
	err := l.Store.Read(ctx, func(rd ledger.Reader) error {
		a, err := rd.Allocation(actor.Scope(), id)
		if err != nil {
			return err
		}
		if e, err = beginExplanation(l.Engine, rd, actor, id, a.PoolID); err != nil {
			return err
		}
		if a.Observed() {
			e.explainWork(a)
			return nil
		}
		e.explainAllocation(a)
		if err = e.explainIdleness(rd, a); err != nil {
			return err
		}
		if err = e.blockByEntry(rd, actor, a); err != nil {
			return err
		}
		e.Wait, err = e.waits.Allocation(a)
		return err
	})
	if err != nil {
		return ledger.Explanation{}, err
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
		if a.Reason == plan.ReasonGPUsIdle {
			e.Summary = what + ": reclaimed, since its GPUs did nothing"
		}
	}
	e.describeNextSteps(map[string]string{plan.StepGivesUp: "it expires if the nodes are not there by then",
		plan.StepLease: "its lease ends", plan.StepReclaim: "it ends unless one of its GPUs does something before"})
}

// explainIdleness says of an allocation that its GPUs do nothing, where that is known.
func (e *explained) explainIdleness(r ledger.Reader, a allocation.Allocation) error {
	idle, err := ledger.IdleAllocations(r, []allocation.Allocation{a})
	if found, is := idle[a.ID]; is && ledger.IsTold(found, a) {
		e.Summary = fmt.Sprintf("%s in %s: held, and idle since %s", phrase.Count(a.Shape.GPUs(), "GPU"),
			e.state.Pool.Name, ledger.FormatTimeSeen(found.Since, e.At))
	}
	return err
}

// explainWork explains what a cluster's own scheduler placed. Nobody but the cluster knows
// how long it waits, or runs.
func (e *explained) explainWork(a allocation.Allocation) {
	e.Kind, e.State, e.Reason, e.Since = "allocation", string(a.State()), a.Reason, a.RequestedAt
	what := fmt.Sprintf("%s, which the cluster placed on %s in %s", a.Work.Label(), phrase.Count(a.Shape.GPUs(), "GPU"),
		e.state.Pool.Name)
	switch {
	case a.State() == allocation.Pending:
		e.Summary = what + ": waits for nodes that boot"
	case a.Live():
		e.Since, e.Summary = a.ActiveAt, fmt.Sprintf("%s: runs, on %s of %s kept warm", what,
			phrase.Count(len(a.Slots), "node"), phrase.Count(a.Shape.Nodes, "node"))
	default:
		e.Since, e.Summary = a.EndedAt, what+": over"
	}
}

// blockByRecovery stands in the way of everything; time alone does not clear it, so
// that no wait is estimated.
func (e *explained) blockByRecovery() {
	b := ledger.Blocker{
		Code:     ledger.CodeRecovering,
		Message:  "the pool only reconciles until an operator confirms what was found at its provider",
		Evidence: []string{"since " + ledger.FormatTimeSeen(e.state.Pool.Recovery.Since, e.At)},
	}
	if e.operator {
		b.Evidence = append(b.Evidence, e.state.Pool.Recovery.Reason)
		b.Fix = "forewarm recovery show"
	}
	e.Blockers, e.hopeless = append(e.Blockers, b), true
}

// ExplainRequest tells what would become of a request: its effect, or every
// blocker and what would be accepted instead.
func (l Reporting) ExplainRequest(ctx context.Context, actor ledger.Actor, op txn.BoundOperation) (
	ledger.Explanation, error) {
	e := ledger.Explanation{Kind: "request", State: "accepted", Summary: "it would get its GPUs"}
	effect, _, err := preview.Previews{Engine: l.Engine}.DryRun(ctx, actor, op)
	if errors.As(err, &e.Refused) {
		e.State, e.Summary = "refused", e.Refused.Error()
		return e, l.Store.Read(ctx, func(r ledger.Reader) error {
			e.At = r.Now()
			return nil
		})
	}
	if err != nil {
		return e, err
	}
	e.At, e.Effect, e.Wait = effect.At, effect, effect.Wait
	if needsWorker(effect) {
		if err := l.blockRequestWithoutWorker(ctx, actor, &e); err != nil {
			return e, err
		}
	}
	if effect.Wait != nil || len(e.Blockers) > 0 {
		e.State, e.Summary = "waits", "it would get a place, and wait for its GPUs"
	}
	return e, nil
}
