package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/internal/ids"
)

// DecisionKind says what was decided.
type DecisionKind string

// The kinds of decision.
const (
	DecisionAdmission    DecisionKind = "admission"    // a request got its place
	DecisionWaitlist     DecisionKind = "waitlist"     // it has none yet and waits for one
	DecisionRefusal      DecisionKind = "refusal"      // it got none
	DecisionPromotion    DecisionKind = "promotion"    // what waited got a place
	DecisionDisplacement DecisionKind = "displacement" // it gave way to a request that outranks it
	DecisionPrewarm      DecisionKind = "prewarm"      // a node was asked for, or a reservation began to warm
	DecisionReclaim      DecisionKind = "reclaim"      // a node was taken back, or a promise that nobody came for ended
	DecisionPlacement    DecisionKind = "placement"    // the planner handed over, moved or flagged what is promised
)

// DecisionKinds lists the kinds.
var DecisionKinds = []DecisionKind{DecisionAdmission, DecisionWaitlist, DecisionRefusal, DecisionPromotion,
	DecisionDisplacement, DecisionPrewarm, DecisionReclaim, DecisionPlacement}

// Engine says which package of core recomputes a record.
type Engine string

// The engines.
const (
	AdmissionEngine Engine = "admission" // core/admission.Replay
	PlanEngine      Engine = "plan"      // core/plan.Replay
)

// DecisionRecord is an event's Decision, taken apart. Record is the engine's own
// canonical JSON, byte for byte; it is nil when it was too long to be kept.
type DecisionRecord struct {
	Kind   DecisionKind    `json:"kind"`
	Engine Engine          `json:"engine"`
	Record json.RawMessage `json:"record"`
	// Also are reasons for a refusal that the engine did not know.
	Also []admission.Reason `json:"also,omitempty"`
}

// maxRecord is the longest record that is kept, in bytes. A journal that one
// request could fill would be a way to fill the disk.
const maxRecord = 64 << 10

// encodeRecord returns the stored form, which begins with the kind, so that a list can
// be narrowed without an index of its own. The record is not encoded again: its
// bytes are what a replay is compared with.
func (r DecisionRecord) encodeRecord() []byte {
	record := []byte(r.Record)
	if len(record) == 0 || len(record) > maxRecord {
		record = []byte("null")
	}
	var b bytes.Buffer
	b.WriteString(DecisionPrefix(r.Kind))
	fmt.Fprintf(&b, `"engine":%q,"record":`, string(r.Engine))
	b.Write(record)
	if len(r.Also) > 0 {
		also, err := json.Marshal(r.Also)
		if err == nil { // codes, numbers and sentences can always be encoded
			fmt.Fprintf(&b, `,"also":%s`, also)
		}
	}
	b.WriteByte('}')
	return b.Bytes()
}

// DecisionPrefix is what the stored form of every decision of the kind begins with.
func DecisionPrefix(k DecisionKind) string { return fmt.Sprintf(`{"kind":%q,`, string(k)) }

// ReadDecision takes an event's decision apart.
func ReadDecision(stored []byte) (DecisionRecord, error) {
	var r DecisionRecord
	if err := json.Unmarshal(stored, &r); err != nil {
		return r, fmt.Errorf("reading a decision record: %w", err)
	}
	if string(r.Record) == "null" {
		r.Record = nil
	}
	return r, nil
}

// verdict is a decision of admission, with what it can be computed again from.
type verdict struct {
	admission.Decision
	request admission.Request
	facts   admission.Facts
	also    []admission.Reason // why it was overruled
}

// judgeRequest judges a request, and keeps the facts.
func judgeRequest(r admission.Request, v admission.View) verdict {
	f := admission.Observe(r, v)
	return verdict{Decision: admission.Judge(r, f), request: r, facts: f}
}

// refuseFor refuses what admission accepted, for reasons that it does not know.
func (v *verdict) refuseFor(reasons []admission.Reason) {
	if len(reasons) > 0 {
		v.Reasons, v.also = reasons, reasons
	}
}

// decisionRecord is the verdict as an event's Decision.
func (v verdict) decisionRecord(kind DecisionKind) []byte {
	decided := v.Decision
	if !v.Accepted() { // what is answered may name fewer offers, or other reasons
		decided = admission.Judge(v.request, v.facts)
	}
	record := admission.Record{Version: admission.RecordVersion, Request: v.request, Facts: v.facts, Decision: decided}
	text, err := record.Encode()
	if err != nil {
		text = nil // numbers, times and names can always be encoded; a record is no reason to fail a verb
	}
	return DecisionRecord{Kind: kind, Engine: AdmissionEngine, Record: text, Also: v.also}.encodeRecord()
}

// attachDecision attaches a decision to the event that was journaled last.
func (tx *groupTx) attachDecision(decision []byte) {
	if n := len(tx.change.Events); n > 0 {
		tx.change.Events[n-1].Decision = decision
	}
}

// attachPlannerDecision attaches a planner's decision to the first event that carrying
// it out left, if it left one since there were n.
func attachPlannerDecision(tx *groupTx, n int, a plan.Action) error {
	if len(tx.change.Events) == n {
		return nil
	}
	text, err := a.Record().Encode()
	if err != nil {
		return err
	}
	tx.change.Events[n].Decision = DecisionRecord{Kind: plannedKinds[a.Kind], Engine: PlanEngine, Record: text}.encodeRecord()
	return nil
}

// plannedKinds says what the planner's actions decide about.
var plannedKinds = map[plan.Kind]DecisionKind{
	plan.BootNode: DecisionPrewarm, plan.WarmReservation: DecisionPrewarm,
	plan.AbandonNode: DecisionReclaim, plan.DrainNode: DecisionReclaim, plan.RetireNode: DecisionReclaim,
	plan.ExpireReservation: DecisionReclaim, plan.FailReservation: DecisionReclaim,
	plan.ExpireAllocation: DecisionReclaim, plan.FailAllocation: DecisionReclaim,
	plan.ReadyReservation: DecisionPlacement, plan.UnreadyReservation: DecisionPlacement,
	plan.DegradeReservation: DecisionPlacement, plan.RestoreReservation: DecisionPlacement,
	plan.MoveReservation: DecisionPlacement, plan.MoveAllocation: DecisionPlacement,
	plan.ActivateAllocation: DecisionPlacement,
}

// refuseRequest makes the error of a request that gets no place, and, but for a
// dry run and for one of very many (see refusals), the event that it leaves
// under an id of its own. What was asked for
// is a reservation or an allocation.
func refuseRequest(tx *groupTx, p *poolTx, organizationID, what string, v verdict) *RefusedError {
	e := &RefusedError{Pool: p.Pool.Name, PerNode: p.Pool.PerNode, Decision: v.Decision}
	if tx.dryRun || !tx.mayJournal(organizationID, v.Reasons[0].Code) {
		return e
	}
	e.DecisionID = tx.ids.New(ids.Decision)
	e.leaves = &Event{
		OrganizationID: organizationID, At: tx.now(), Type: what + ".refused", Subject: e.DecisionID, PoolID: p.Pool.ID,
		Actor: tx.actor.KeyID,
		Via:   tx.actor.Via, Reason: string(v.Reasons[0].Code), Message: clipText(e.Error(), 200),
		Decision: v.decisionRecord(DecisionRefusal),
	}
	return e
}

// onlyAsked is a refusal of a question: nothing was requested, so it is not
// journaled.
func onlyAsked(err error) error {
	var refused *RefusedError
	if errors.As(err, &refused) {
		refused.leaves, refused.DecisionID = nil, ""
	}
	return err
}

// journalRefusal journals a refusal, if err is one that is to be, and reports whether it
// did.
func (tx *groupTx) journalRefusal(err error) bool {
	var refused *RefusedError
	if !errors.As(err, &refused) || refused.leaves == nil {
		return false
	}
	tx.change.Events = append(tx.change.Events, *refused.leaves)
	return true
}

// DecisionFilter narrows a list of decisions. Zero fields do not narrow.
type DecisionFilter struct {
	Before  int64 // only events with a smaller seq
	Seq     int64 // only the event with this seq
	Subject string
	PoolID  string
	Kind    DecisionKind
	Actor   string // key id, or a part of the system
}
