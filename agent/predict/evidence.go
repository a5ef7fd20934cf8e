package predict

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"
)

// The limits of an answer of the model.
const (
	maxRecords = 64
	maxClaim   = 1_000_000 // GPUs; more is nonsense, not a large request
)

// Record is one expectation that a model read out of log lines.
type Record struct {
	Start, End     time.Time
	Low, Mid, High int // GPUs if the need comes
	Probability    float64
	Reason         Reason
}

// Evidence is a checked answer of the model.
type Evidence struct {
	Records    []Record
	Model      string
	PromptHash string
}

// overlapShare returns the share of the record's time that lies in [start, end).
func (r Record) overlapShare(start, end time.Time) float64 {
	from, to := r.Start, r.End
	if start.After(from) {
		from = start
	}
	if end.Before(to) {
		to = end
	}
	return float64(to.Sub(from)) / float64(r.End.Sub(r.Start))
}

// answer is the wire form. Pointers tell what is missing from what is zero.
type answer struct {
	Records *[]struct {
		Start       *time.Time `json:"start"`
		End         *time.Time `json:"end"`
		Low         *float64   `json:"gpus_low"`
		Mid         *float64   `json:"gpus_mid"`
		High        *float64   `json:"gpus_high"`
		Probability *float64   `json:"probability"`
		Reason      *Reason    `json:"reason_code"`
	} `json:"records"`
}

// answerSchema returns the JSON schema of answer. All fields are required, as strict
// mode wants; the limits of numbers are checked here, not there, because servers
// differ in what they enforce.
func answerSchema() json.RawMessage {
	data, err := json.Marshal(map[string]any{
		"type": "object", "additionalProperties": false, "required": []string{"records"},
		"properties": map[string]any{"records": map[string]any{"type": "array", "items": recordSchema()}},
	})
	if err != nil {
		return nil // unreachable: only strings, slices and maps
	}
	return data
}

func recordSchema() map[string]any {
	text, whole, number := map[string]any{"type": "string"}, map[string]any{"type": "integer"},
		map[string]any{"type": "number"}
	return map[string]any{
		"type": "object", "additionalProperties": false,
		"required": []string{"start", "end", "gpus_low", "gpus_mid", "gpus_high", "probability", "reason_code"},
		"properties": map[string]any{
			"start": text, "end": text, "gpus_low": whole, "gpus_mid": whole, "gpus_high": whole, "probability": number,
			"reason_code": map[string]any{"type": "string", "enum": Reasons()},
		},
	}
}

// decodeAnswer checks all of an answer for windows within [from, to]. Its errors name
// our fields and never quote the model, because they are logged and sent back.
func decodeAnswer(text string, from, to time.Time) ([]Record, error) {
	var a answer
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&a); err != nil {
		return nil, describeJSONError(err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is text after the JSON object")
	}
	if a.Records == nil {
		return nil, errors.New(`the field "records" is missing`)
	}
	if len(*a.Records) > maxRecords {
		return nil, fmt.Errorf("%d records, at most %d are allowed", len(*a.Records), maxRecords)
	}
	records := make([]Record, 0, len(*a.Records))
	for i, r := range *a.Records {
		if r.Start == nil || r.End == nil || r.Low == nil || r.Mid == nil || r.High == nil || r.Probability == nil ||
			r.Reason == nil {
			return nil, fmt.Errorf("record %d: a field is missing", i)
		}
		gpus := [3]float64{*r.Low, *r.Mid, *r.High}
		record := Record{Start: r.Start.UTC(), End: r.End.UTC(), Probability: *r.Probability, Reason: *r.Reason}
		if err := record.validate(gpus, from, to); err != nil {
			return nil, fmt.Errorf("record %d: %w", i, err)
		}
		record.Low, record.Mid, record.High = int(gpus[0]), int(gpus[1]), int(gpus[2])
		records = append(records, record)
	}
	return records, nil
}

func (r Record) validate(gpus [3]float64, from, to time.Time) error {
	for _, g := range gpus {
		if !(g >= 0 && g <= maxClaim) || g != math.Trunc(g) {
			return fmt.Errorf("gpus_low, gpus_mid and gpus_high must be whole numbers from 0 to %d", maxClaim)
		}
	}
	switch {
	case gpus[0] > gpus[1] || gpus[1] > gpus[2]:
		return errors.New("want gpus_low <= gpus_mid <= gpus_high")
	case !(r.Probability >= 0 && r.Probability <= 1):
		return errors.New("probability must lie between 0 and 1")
	case !r.Start.Before(r.End) || r.Start.Before(from) || r.End.After(to):
		return fmt.Errorf("want %s <= start < end <= %s", from.Format(time.RFC3339), to.Format(time.RFC3339))
	case !slices.Contains(Reasons(), r.Reason):
		return errors.New("reason_code is not one of the list")
	default:
		return nil
	}
}

// describeJSONError says what is wrong with JSON without quoting it.
func describeJSONError(err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("it is not JSON, from byte %d on", syntax.Offset)
	case errors.As(err, &kind):
		return fmt.Errorf("a value at byte %d has the wrong type", kind.Offset)
	default:
		return errors.New("it does not follow the schema: an unknown field, a wrong time, or it ends too early")
	}
}
