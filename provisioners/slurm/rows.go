package slurm

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/forewarm/forewarm/provisioners"
)

// rows takes the rows of a listing while a command prints it. Each cell ends with a
// separator of this listing alone: what somebody wrote into a field of their job, line
// breaks and separators of others included, cannot look like another cell or row.
//
// It holds no more than one row. What take returns an error for is counted.
type rows struct {
	columns   int
	take      func(row []string) error
	mostRows  int
	mostBytes int
	separator string

	stop    func()
	rest    []byte // of a cell that has not ended
	row     []string
	count   int
	read    int
	strange int   // rows that take has not understood
	first   error // what was wrong with the first of them
	full    bool  // there were more rows
}

// The limits of a listing of everybody's jobs: more than a cluster holds (MaxJobCount is
// 10,000 unless it was raised), and some seconds' work.
const (
	mostRows     = 200_000
	mostRowBytes = 128 << 20
)

// newRows is a listing with so many columns.
func (c commands) newRows(columns int, take func(row []string) error) *rows {
	return &rows{columns: columns, take: take, mostRows: c.mostRows, mostBytes: mostRowBytes,
		separator: separator + rand.Text()[:8]}
}

func (r *rows) endWith(stop func()) { r.stop = stop }

func (r *rows) hadEnough() bool { return r.full }

// Write never fails.
func (r *rows) Write(data []byte) (int, error) {
	if r.full {
		return len(data), nil
	}
	r.read += len(data)
	r.rest = append(r.rest, data...)
	from := 0
	for !r.full {
		length := bytes.Index(r.rest[from:], []byte(r.separator))
		if length < 0 {
			break
		}
		r.takeCell(string(r.rest[from : from+length]))
		from += length + len(r.separator)
	}
	r.rest = append(r.rest[:0], r.rest[from:]...)
	if r.read >= r.mostBytes && !r.full {
		r.end()
	}
	return len(data), nil
}

func (r *rows) end() {
	r.full = true
	if r.stop != nil {
		r.stop()
	}
}

func (r *rows) takeCell(cell string) {
	if len(r.row) == 0 {
		if r.count >= r.mostRows {
			r.end()
			return
		}
		cell = strings.TrimPrefix(cell, "\n") // the end of the row before
	}
	if r.row = append(r.row, strings.Trim(cell, " ")); len(r.row) < r.columns {
		return
	}
	r.count++
	if err := r.take(r.row); err != nil {
		if r.strange++; r.strange == 1 {
			r.first = err
		}
	}
	r.row = make([]string, 0, r.columns)
}

// isWhole reports whether the listing ended where it should, after its last row.
func (r *rows) isWhole() bool {
	return !r.full && len(r.row) == 0 && (len(r.rest) == 0 && r.count == 0 || string(r.rest) == "\n")
}

// readRows runs a command that prints rows.
func (c commands) readRows(ctx context.Context, r *rows, name string, args ...string) error {
	got, err := c.runInto(ctx, r, "", name, args...)
	return c.checkAnswer(name, got, err, provisioners.KindTransient)
}

// formatCells is the argument of squeue's --Format for the columns, each as wide as what
// it says: a width of 0 neither pads nor cuts.
func (r *rows) formatCells(columns []string) string {
	parts := make([]string, len(columns))
	for i, column := range columns {
		parts[i] = fmt.Sprintf("%s:0%s", column, r.separator)
	}
	return strings.Join(parts, ",")
}

// sacctArgs are those of sacct for one row a job, in the columns.
func (r *rows) sacctArgs(columns []string) []string {
	return []string{"--noheader", "--parsable", "--allocations", "--duplicates", "--delimiter=" + r.separator,
		"--format=" + strings.Join(columns, ",")}
}
