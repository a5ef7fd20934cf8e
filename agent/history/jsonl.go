package history

import (
	"cmp"
	"encoding/json"
	"strings"
)

type jsonlParser struct{ options Options }

// NewJSONL returns a parser for the format of ReadJSONL.
func NewJSONL(o Options) Parser { return &jsonlParser{options: o} }

// Header is always false: every line of a JSONL file stands alone.
func (p *jsonlParser) Header() bool { return false }

// Parse reads one line.
func (p *jsonlParser) Parse(text string) (Record, bool, error) {
	var row struct {
		ID        scalar  `json:"job_id"`
		Group     scalar  `json:"group"`
		User      scalar  `json:"user"`
		Submitted scalar  `json:"submit_ts"`
		Started   scalar  `json:"start_ts"`
		Duration  scalar  `json:"duration_s"`
		GPUs      scalar  `json:"gpus"`
		Status    scalar  `json:"status"`
		Array     scalar  `json:"array"`
		Name      lenient `json:"name"`
		JobName   lenient `json:"job_name"`
		Comment   lenient `json:"comment"`
		Labels    lenient `json:"labels"`
	}
	if err := json.Unmarshal([]byte(text), &row); err != nil {
		return Record{}, false, &RowError{Rule: "must be one JSON object with texts and numbers"}
	}
	t := traceRow{
		id: string(row.ID), group: string(row.Group), user: string(row.User), submitted: string(row.Submitted),
		started: string(row.Started), duration: string(row.Duration), gpus: string(row.GPUs),
		status: string(row.Status), array: string(row.Array),
		name: string(cmp.Or(row.Name, row.JobName)), comment: string(row.Comment), labels: string(row.Labels),
		nameless: row.Name+row.JobName+row.Comment+row.Labels == "",
	}
	if t.isOurs(p.options) {
		return Record{}, false, nil
	}
	r, err := t.toRecord(p.options)
	return r, err == nil, err
}

// lenient takes any JSON as text, so that what a writer has put there breaks no
// row: labels are an object, a list or a text.
type lenient string

// UnmarshalJSON takes a JSON text as it reads, anything else as it is written.
func (l *lenient) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) != nil {
		text = string(b)
	}
	*l = lenient(text)
	return nil
}

// scalar takes a JSON text or number as text, and null as empty: writers differ
// in whether ids and counts are quoted.
type scalar string

// UnmarshalJSON refuses objects, arrays and booleans.
func (s *scalar) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	if b[0] == '"' {
		var text string
		if err := json.Unmarshal(b, &text); err != nil {
			return err
		}
		*s = scalar(strings.TrimSpace(text))
		return nil
	}
	var n json.Number
	if err := json.Unmarshal(b, &n); err != nil {
		return err
	}
	*s = scalar(n)
	return nil
}
