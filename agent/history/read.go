package history

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"
)

// Options say how to read a history. The zero value is ready.
type Options struct {
	// Salt keys the pseudonyms of jobs (see Pseudonym).
	Salt []byte
	// Zone is the zone of times written without one, as sacct does; nil means
	// UTC. In the hour that repeats when summer time ends, the zone database's
	// choice is taken.
	Zone *time.Location
	// OwnUser is as whom Forewarm submits its own work, which is no evidence; empty means DefaultOwnUser. A job of
	// another user is one, whatever it is called.
	OwnUser string
}

func (o Options) zone() *time.Location {
	if o.Zone == nil {
		return time.UTC
	}
	return o.Zone
}

// Parser turns the lines of one file, in order, into records. It is not safe
// for concurrent use.
//
// The first line of a CSV or sacct file must be its header row. To resume in
// the middle of a file, parse its header first.
type Parser interface {
	// Parse reads one line without its end of line. kept is false when the line
	// holds no record: a header, or a row that is no GPU job. The error is a
	// *RowError for a broken row, or a *HeaderError, after which every further
	// line is refused with the same error.
	Parse(text string) (record Record, kept bool, err error)
	// Header reports whether the next line is taken as the header row.
	Header() bool
}

// Scanner reads the records of a stream one at a time, holding one line in
// memory. It is not safe for concurrent use.
type Scanner struct {
	lines  *lines
	parser Parser
	record Record
	report Report
	err    error
}

// NewScanner reads r, plain or gzip, with the parser. The caller closes r.
func NewScanner(r io.Reader, p Parser) *Scanner {
	l, err := newLines(r)
	return &Scanner{lines: l, parser: p, err: err}
}

// Scan moves to the next record. It returns false at the end or when the stream
// cannot be read further; broken rows are counted and passed over.
func (s *Scanner) Scan() bool {
	for s.err == nil {
		text, long, err := s.lines.nextLine()
		if err != nil {
			s.err = err
			break
		}
		if s.parseLine(text, long) {
			return true
		}
	}
	return false
}

// parseLine handles one line and reports whether it made a record.
func (s *Scanner) parseLine(text []byte, long bool) bool {
	if !long && len(bytes.TrimSpace(text)) == 0 {
		return false
	}
	header := s.parser.Header()
	var err error
	kept := false
	if long {
		err = errLongLine
	} else {
		s.record, kept, err = s.parser.Parse(string(text))
	}
	if header {
		s.err = err
		return false
	}
	s.report.Count(s.lines.number, kept, err)
	return kept && err == nil
}

// Record returns the record that the last Scan found.
func (s *Scanner) Record() Record { return s.record }

// Report returns the counts so far.
func (s *Scanner) Report() Report { return s.report }

// Err returns why reading stopped: nil at the end of the stream, a
// *HeaderError, or the error of the stream with the line it came after.
func (s *Scanner) Err() error {
	switch {
	case s.err == nil, errors.Is(s.err, io.EOF):
		return nil
	case s.lines == nil, errors.As(s.err, new(*HeaderError)):
		return fmt.Errorf("reading history: %w", s.err)
	default:
		return fmt.Errorf("reading history after line %d: %w", s.lines.number, s.err)
	}
}

// readRecords hands every record of r to each, and stops at the first error of each.
func readRecords(r io.Reader, p Parser, each func(Record) error) (Report, error) {
	s := NewScanner(r, p)
	for s.Scan() {
		if err := each(s.Record()); err != nil {
			return s.Report(), err
		}
	}
	return s.Report(), s.Err()
}

// ReadCSV reads a CSV file with a header row and calls each for every record,
// in file order. Columns are found by name: job_id, submit_ts (Unix seconds) and
// gpus must be there; group, user, start_ts (Unix seconds at which it got its
// GPUs), duration_s, status, name (or job_name), comment and labels may be; others
// are ignored. By the last three, placeholders of Forewarm are known and skipped.
// A row is one line: quoted line breaks are refused, so that one stray quote
// breaks one row. An error of each stops the reading and is returned.
func ReadCSV(r io.Reader, o Options, each func(Record) error) (Report, error) {
	return readRecords(r, NewCSV(o), each)
}

// ReadJSONL reads one JSON object per line, with the names of ReadCSV's columns
// as keys, and calls each for every record. Unknown keys are ignored.
func ReadJSONL(r io.Reader, o Options, each func(Record) error) (Report, error) {
	return readRecords(r, NewJSONL(o), each)
}

// ReadSacct reads the text of "sacct --parsable2" with its header row and calls
// each for every GPU job. Job steps and jobs without a GPU are skipped.
func ReadSacct(r io.Reader, o Options, each func(Record) error) (Report, error) {
	return readRecords(r, NewSacct(o), each)
}
