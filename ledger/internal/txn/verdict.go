package txn

import (
	"errors"
	"slices"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
)

// Verdict is a decision of admission, with what it can be computed again from.
type Verdict struct {
	admission.Decision
	request admission.Request
	facts   admission.Facts
	also    []admission.Reason // why it was overruled
}

// JudgeRequest judges a request, and keeps the facts.
func JudgeRequest(r admission.Request, v admission.View) Verdict {
	f := admission.Observe(r, v)
	return Verdict{Decision: admission.Judge(r, f), request: r, facts: f}
}

// RefuseFor refuses what admission accepted, for reasons that it does not know.
func (v *Verdict) RefuseFor(reasons []admission.Reason) {
	if len(reasons) > 0 {
		v.Reasons, v.also = reasons, reasons
	}
}

// DecisionRecord is the verdict as an event's Decision.
func (v Verdict) DecisionRecord(kind ledger.DecisionKind) []byte {
	decided := v.Decision
	if !v.Accepted() { // what is answered may name fewer offers, or other reasons
		decided = admission.Judge(v.request, v.facts)
	}
	record := admission.Record{Version: admission.RecordVersion, Request: v.request, Facts: v.facts, Decision: decided}
	text, err := record.Encode()
	if err != nil {
		text = nil // numbers, times and names can always be encoded; a record is no reason to fail a verb
	}
	return ledger.DecisionRecord{Kind: kind, Engine: ledger.AdmissionEngine, Record: text, Also: v.also}.Encode()
}

// AttachDecision attaches a decision to the event that was journaled last.
func (tx *Tx) AttachDecision(decision []byte) {
	if n := len(tx.Change.Events); n > 0 {
		tx.Change.Events[n-1].Decision = decision
	}
}

// AttachPlannerDecision attaches a planner's decision to the first event that carrying
// it out left, if it left one since there were n.
func AttachPlannerDecision(tx *Tx, n int, a plan.Action) error {
	if len(tx.Change.Events) == n {
		return nil
	}
	text, err := a.Record().Encode()
	if err != nil {
		return err
	}
	tx.Change.Events[n].Decision = ledger.DecisionRecord{Kind: plannedKinds[a.Kind], Engine: ledger.PlanEngine,
		Record: text}.Encode()
	return nil
}

// plannedKinds says what the planner's actions decide about.
var plannedKinds = map[plan.Kind]ledger.DecisionKind{
	plan.BootNode: ledger.DecisionPrewarm, plan.WarmReservation: ledger.DecisionPrewarm,
	plan.AbandonNode: ledger.DecisionReclaim, plan.DrainNode: ledger.DecisionReclaim,
	plan.RetireNode:        ledger.DecisionReclaim,
	plan.ExpireReservation: ledger.DecisionReclaim, plan.FailReservation: ledger.DecisionReclaim,
	plan.ExpireAllocation: ledger.DecisionReclaim, plan.FailAllocation: ledger.DecisionReclaim,
	plan.WarnIdle: ledger.DecisionReclaim, plan.ReclaimIdle: ledger.DecisionReclaim,
	plan.ReadyReservation: ledger.DecisionPlacement, plan.UnreadyReservation: ledger.DecisionPlacement,
	plan.DegradeReservation: ledger.DecisionPlacement, plan.RestoreReservation: ledger.DecisionPlacement,
	plan.MoveReservation: ledger.DecisionPlacement, plan.MoveAllocation: ledger.DecisionPlacement,
	plan.ActivateAllocation: ledger.DecisionPlacement,
}

// RefuseRequest makes the error of a request that gets no place, and, but for a
// dry run and for one of very many (see refusals), the event that it leaves
// under an id of its own. What was asked for
// is a reservation, an allocation, a schedule or a job.
func RefuseRequest(tx *Tx, p *PoolTx, organizationID, what string, v Verdict) *ledger.RefusedError {
	e := &ledger.RefusedError{What: what, Pool: p.Pool.Name, PerNode: p.Pool.PerNode, Decision: v.Decision,
		Closed: closedNodes(p, v.Decision)}
	if tx.IsDryRun || !tx.mayJournal(organizationID, v.Reasons[0].Code) {
		return e
	}
	e.DecisionID = tx.IDs.New(ids.Decision)
	e.Leaves = &ledger.Event{
		OrganizationID: organizationID, At: tx.Now(), Type: what + ".refused", Subject: e.DecisionID, PoolID: p.Pool.ID,
		Actor: tx.Actor.KeyID,
		Via:   tx.Actor.Via, Reason: string(v.Reasons[0].Code), Message: ledger.ClipText(e.Error(), 200),
		Decision: v.DecisionRecord(ledger.DecisionRefusal),
	}
	return e
}

// closedNodes are those nodes of a pool, too full for somebody, that take no new work.
func closedNodes(p *PoolTx, d admission.Decision) (all []ledger.ClosedNodes) {
	full := slices.ContainsFunc(d.Reasons, func(r admission.Reason) bool {
		return r.Code == admission.CapacityExhausted
	})
	if !full {
		return nil
	}
	counts := map[node.State]int{}
	for n := range p.Nodes.All() {
		counts[n.State()]++
	}
	for _, state := range []node.State{node.Draining, node.Quarantined} {
		if counts[state] > 0 {
			all = append(all, ledger.ClosedNodes{State: string(state), Nodes: counts[state]})
		}
	}
	return all
}

// OnlyAsked is a refusal of a question: nothing was requested, so it is not
// journaled.
func OnlyAsked(err error) error {
	var refused *ledger.RefusedError
	if errors.As(err, &refused) {
		refused.Leaves, refused.DecisionID = nil, ""
	}
	return err
}

// JournalRefusal journals a refusal, if err is one that is to be, and reports whether it
// did.
func (tx *Tx) JournalRefusal(err error) bool {
	var refused *ledger.RefusedError
	if !errors.As(err, &refused) || refused.Leaves == nil {
		return false
	}
	tx.Change.Events = append(tx.Change.Events, *refused.Leaves)
	return true
}

// LeavesCalendar reports whether the verdict accepts the request into the calendar as
// it is.
func (v Verdict) LeavesCalendar() bool { return v.Accepted() && len(v.Displaced) == 0 }

// MakesRoom reports whether room was made among bookings that give way. Whether
// that helps does not depend on their order, and so not on their shares.
func (v Verdict) MakesRoom() bool { return len(v.facts.Room.Candidates) > 0 }

// MovableBookings lists the bookings that may be given other slots: those for which
// nothing has been warmed. The list is kept until a booking changes.
func (d *cachedPool) MovableBookings() []string {
	if d.mobile == nil {
		d.mobile = []string{}
		for _, r := range d.Reservations.Rows {
			if r.State() == reservation.Booked {
				d.mobile = append(d.mobile, r.ID)
			}
		}
	}
	return d.mobile
}
