package audit

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Run is a line that a job wrote down when it began or ended.
type Run struct {
	At       time.Time
	Ends     bool // else it begins
	JobID    string
	Attempt  int
	ExitCode int // counts at its end
	Rank     int // of its node
}

// ParseRuns reads what jobs wrote down. Each line is whole: the kernel appends it at once.
func ParseRuns(r io.Reader) ([]Run, error) {
	var all []Run
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		one, err := parseRun(strings.Fields(lines.Text()))
		if err != nil {
			return nil, fmt.Errorf("line %d of the runs is none of theirs: %q", n, lines.Text())
		}
		all = append(all, one)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading what jobs wrote down: %w", err)
	}
	slices.SortStableFunc(all, func(a, b Run) int { return a.At.Compare(b.At) })
	return all, nil
}

func parseRun(f []string) (r Run, err error) {
	if len(f) != 6 || f[1] != begins && f[1] != ends {
		return r, strconv.ErrSyntax
	}
	micros, err := strconv.ParseInt(strings.Replace(f[0], ".", "", 1), 10, 64)
	if err != nil {
		return r, err
	}
	r = Run{At: time.UnixMicro(micros).UTC(), Ends: f[1] == ends, JobID: f[2]}
	if r.Attempt, err = strconv.Atoi(f[3]); err == nil && r.Ends {
		r.ExitCode, err = strconv.Atoi(f[4])
	}
	if err == nil {
		r.Rank, err = strconv.Atoi(f[5])
	}
	return r, err
}
