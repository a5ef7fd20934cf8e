package history

import (
	"errors"
	"fmt"
	"strings"
)

// maxErrors is how many broken rows a Report describes one by one.
const maxErrors = 20

// RowError says which rule a row breaks. It never holds the value, which may be
// private or hostile.
type RowError struct {
	// Line is the line in the file, from 1; 0 when not known.
	Line int64
	// Field is the column; empty when the row as a whole is broken.
	Field string
	// Rule is what the field must be.
	Rule string
}

// Error names the line, the field and the rule.
func (e *RowError) Error() string {
	var b strings.Builder
	if e.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", e.Line)
	}
	if e.Field != "" {
		b.WriteString(e.Field + " ")
	}
	b.WriteString(e.Rule)
	return b.String()
}

// HeaderError says that a file cannot be read at all, because its header row
// lacks columns.
type HeaderError struct {
	// Missing are the names that were looked for.
	Missing []string
	// Why says what the columns are for; empty where their names say it.
	Why string
}

// whyNames is why names of jobs are needed.
const whyNames = "without it Forewarm's own placeholders would count as your jobs; "

// Error names the missing columns and the fix.
func (e *HeaderError) Error() string {
	return fmt.Sprintf("the header row has no column %s: %sadd it, or choose the format that the file has; "+
		"docs/agent.md names the columns of each",
		strings.Join(e.Missing, ", "), e.Why)
}

// Report counts what was done with the rows of a file.
// Rows = Kept + Broken + Skipped.
type Report struct {
	// Rows is the number of lines that are neither blank nor the header.
	Rows int64
	// Kept is the number of records made.
	Kept int64
	// Broken is the number of rows that broke a rule.
	Broken int64
	// Skipped is the number of sound rows that are no GPU job of yours: job steps,
	// jobs without a GPU, and placeholders of Forewarm.
	Skipped int64
	// Errors describes the first 20 broken rows.
	Errors []RowError
}

// Count adds one row: the outcome of Parser.Parse for the given line.
func (r *Report) Count(line int64, kept bool, err error) {
	r.Rows++
	switch {
	case err != nil:
		r.noteBroken(line, err)
	case kept:
		r.Kept++
	default:
		r.Skipped++
	}
}

func (r *Report) noteBroken(line int64, err error) {
	r.Broken++
	if len(r.Errors) >= maxErrors {
		return
	}
	row := RowError{Rule: "cannot be read"}
	var typed *RowError
	if errors.As(err, &typed) {
		row = *typed
	}
	row.Line = line
	r.Errors = append(r.Errors, row)
}
