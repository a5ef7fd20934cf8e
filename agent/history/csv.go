package history

import (
	"cmp"
	"encoding/csv"
	"slices"
	"strings"
)

// columns finds the fields of a row by the names in a header row.
type columns struct {
	index map[string]int
	width int
	last  string // name of the last column; empty behind a closing separator
}

// newColumns reads a header row; names are compared in lower case. The error is
// a *HeaderError when a required name is missing.
func newColumns(names, required []string) (columns, error) {
	c := columns{index: make(map[string]int, len(names)), width: len(names)}
	if len(names) > 0 {
		c.last = strings.TrimSpace(names[len(names)-1])
	}
	for i, name := range slices.Backward(names) {
		c.index[strings.ToLower(strings.TrimSpace(name))] = i
	}
	var missing []string
	for _, name := range required {
		if _, ok := c.index[strings.ToLower(name)]; !ok {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return columns{}, &HeaderError{Missing: missing}
	}
	return c, nil
}

// fieldOf returns the field of the named column, or an empty string.
func (c columns) fieldOf(row []string, name string) string {
	i, ok := c.index[name]
	if !ok || i >= len(row) {
		return ""
	}
	return strings.TrimSpace(row[i])
}

// hasAny reports whether one of the columns is there.
func (c columns) hasAny(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { _, ok := c.index[name]; return ok })
}

// foldSeparators puts together the named column, if it is the last with a name, where its
// own text has the separator in it.
func (c columns) foldSeparators(row []string, name string) []string {
	i, ok := c.index[name]
	over := len(row) - c.width
	if !ok || over <= 0 || i < c.width-2 || i == c.width-2 && c.last != "" {
		return row
	}
	whole := strings.Join(row[i:i+over+1], "|")
	return append(append(slices.Clone(row[:i]), whole), row[i+over+1:]...)
}

type csvParser struct {
	options Options
	columns columns
	ready   bool
	err     error
}

// NewCSV returns a parser for the format of ReadCSV.
func NewCSV(o Options) Parser { return &csvParser{options: o} }

// Header reports whether the header row is still to come.
func (p *csvParser) Header() bool { return !p.ready }

// Parse reads one line.
func (p *csvParser) Parse(text string) (Record, bool, error) {
	if p.err != nil {
		return Record{}, false, p.err
	}
	row, err := splitCSV(text)
	if !p.ready {
		p.ready = true
		if err == nil {
			p.columns, err = newColumns(row, []string{"job_id", "submit_ts", "gpus"})
		}
		p.err = err
		return Record{}, false, err
	}
	if err != nil {
		return Record{}, false, err
	}
	if len(row) != p.columns.width {
		return Record{}, false, errWidth
	}
	get := func(name string) string { return p.columns.fieldOf(row, name) }
	t := traceRow{
		id: get("job_id"), group: get("group"), user: get("user"), submitted: get("submit_ts"),
		started: get("start_ts"), duration: get("duration_s"), gpus: get("gpus"), status: get("status"),
		array: get("array"),
		name:  cmp.Or(get("name"), get("job_name")), comment: get("comment"), labels: get("labels"),
		nameless: !p.columns.hasAny("name", "job_name", "comment", "labels"),
	}
	if t.isOurs(p.options) {
		return Record{}, false, nil
	}
	r, err := t.toRecord(p.options)
	return r, err == nil, err
}

// errWidth is the broken row whose fields cannot be matched to the header.
var errWidth = &RowError{Rule: "must have as many fields as the header row"}

func splitCSV(text string) ([]string, error) {
	r := csv.NewReader(strings.NewReader(text))
	r.FieldsPerRecord = -1
	row, err := r.Read()
	if err != nil {
		return nil, &RowError{Rule: "must be one line of CSV with balanced quotes"}
	}
	return row, nil
}
