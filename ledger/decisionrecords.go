package ledger

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/forewarm/forewarm/core/admission"
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

// Encode returns the stored form, which begins with the kind, so that a list can
// be narrowed without an index of its own. The record is not encoded again: its
// bytes are what a replay is compared with.
func (r DecisionRecord) Encode() []byte {
	record := []byte(r.Record)
	if len(record) == 0 || len(record) > maxRecord {
		record = []byte("null")
	}
	b := make([]byte, 0, len(record)+headLength)
	b = append(appendDecisionPrefix(b, r.Kind), `"engine":`...)
	b = append(strconv.AppendQuote(b, string(r.Engine)), `,"record":`...)
	b = append(b, record...)
	if len(r.Also) > 0 {
		also, err := json.Marshal(r.Also)
		if err == nil { // codes, numbers and sentences can always be encoded
			b = append(append(b, `,"also":`...), also...)
		}
	}
	return append(b, '}')
}

// headLength is room for what surrounds a record.
const headLength = 80

// DecisionPrefix is what the stored form of every decision of the kind begins with.
func DecisionPrefix(k DecisionKind) string { return string(appendDecisionPrefix(nil, k)) }

func appendDecisionPrefix(b []byte, k DecisionKind) []byte {
	return append(strconv.AppendQuote(append(b, `{"kind":`...), string(k)), ',')
}

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

// DecisionFilter narrows a list of decisions. Zero fields do not narrow.
type DecisionFilter struct {
	Before  int64 // only events with a smaller seq
	Seq     int64 // only the event with this seq
	Subject string
	PoolID  string
	Kind    DecisionKind
	Actor   string // key id, or a part of the system
}
