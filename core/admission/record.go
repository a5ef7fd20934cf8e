package admission

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// RecordVersion is of the rules by which Judge decides and of a Record's form. A
// change to either that decides a stored record differently raises it.
const RecordVersion = 1

// Record is a decision with all that it was made on: it can be decided again.
type Record struct {
	Version  int
	Request  Request
	Facts    Facts
	Decision Decision
}

// Encode returns the record's canonical JSON: the same record always has the
// same bytes. Times beyond the year 9999 and shares that are not numbers are
// errors.
func (r *Record) Encode() ([]byte, error) {
	text, err := appendRecord(r)
	if err != nil {
		return nil, fmt.Errorf("encoding an admission record: %w", err)
	}
	return text, nil
}

// DecodeRecord reads what Encode wrote. Unknown fields and other versions are
// errors: half of a record would be decided differently.
func DecodeRecord(text []byte) (Record, error) {
	var r Record
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return Record{}, fmt.Errorf("decoding an admission record: %w", err)
	}
	if r.Version != RecordVersion {
		return Record{}, fmt.Errorf("decoding an admission record: version %d, this program knows %d", r.Version,
			RecordVersion)
	}
	return r, nil
}

// Replay decides the record's request again on the record's facts, and reports
// whether the decision is the same byte for byte. If not, diff says in which
// parts it differs.
func Replay(r Record) (same bool, diff string) {
	again := Judge(r.Request, r.Facts)
	var differing []string
	for _, part := range []struct {
		name     string
		was, now any
	}{
		{"version", r.Version, RecordVersion},
		{"window", r.Decision.Window, again.Window},
		{"slots", r.Decision.Slots, again.Slots},
		{"moves", r.Decision.Moves, again.Moves},
		{"displaced", r.Decision.Displaced, again.Displaced},
		{"cost", r.Decision.Cost, again.Cost},
		{"reasons", r.Decision.Reasons, again.Reasons},
		{"offers", r.Decision.Offers, again.Offers},
	} {
		was, now := encodeText(part.was), encodeText(part.now)
		if was != now {
			differing = append(differing, fmt.Sprintf("%s: recorded %s, decided again %s", part.name, was, now))
		}
	}
	return len(differing) == 0, strings.Join(differing, "\n")
}

// encodeText is a value's JSON; no values and none given are the same.
func encodeText(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	if s := string(b); s != "null" {
		return s
	}
	return "[]"
}
