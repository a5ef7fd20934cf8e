package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// RecordVersion is the version of the rules that new records were made by. A
// change of Judge, or of a fact's meaning, raises it.
const RecordVersion = 1

// Record is one decision as it is stored: enough to make it again.
type Record struct {
	Version int     `json:"version"`
	Kind    Kind    `json:"kind"`
	Facts   Facts   `json:"facts"`
	Outcome Outcome `json:"outcome"`
}

// Outcome is what was decided, and about what.
type Outcome struct {
	Does    bool   `json:"does"`
	Reason  string `json:"reason"` // a code
	Subject string `json:"subject,omitempty"`
	Slot    int    `json:"slot,omitempty"` // of a node that is made
}

// Record returns the action as it is stored.
func (a Action) Record() Record {
	return Record{Version: RecordVersion, Kind: a.Kind, Facts: a.Facts,
		Outcome: Outcome{true, a.Reason, a.Subject, a.Slot}}
}

// Encode returns the canonical JSON of the record: one line, the fields in the
// order of the type, times in UTC.
func (r Record) Encode() ([]byte, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encoding the record of %s: %w", r.Kind, err)
	}
	return text, nil
}

// DecodeRecord reads what Encode wrote. A field that this version does not know
// is an error: it would be left out of the replay.
func DecodeRecord(text []byte) (Record, error) {
	var r Record
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return Record{}, fmt.Errorf("decoding a record: %w", err)
	}
	return r, nil
}

// Replay makes the decision of a record again from its facts, and says what
// differs if it gives another result when recomputed.
func Replay(r Record) (same bool, diff string) {
	if r.Version != RecordVersion {
		return false, fmt.Sprintf("made by version %d of the rules, this is version %d", r.Version, RecordVersion)
	}
	again := r.Outcome
	again.Does, again.Reason = Judge(r.Kind, r.Facts)
	if again == r.Outcome {
		return true, ""
	}
	return false, fmt.Sprintf("recorded %s %q (%t), again %q (%t)", r.Kind, r.Outcome.Reason, r.Outcome.Does,
		again.Reason, again.Does)
}
