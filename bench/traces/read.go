// Package traces reads traces of jobs in the schema of the development traces.
package traces

import (
	"compress/gzip"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/forewarm/forewarm/core/backtest"
)

// Read reads a trace: CSV, plain or gzip, with a header and the columns job_id, user,
// group, submit_ts, duration_s, gpus, in the order of its rows.
func Read(path string) (backtest.Trace, error) {
	file, err := os.Open(path)
	if err != nil {
		return backtest.Trace{}, fmt.Errorf("opening the trace: %w", err)
	}
	defer func() { _ = file.Close() }() // only read
	var in io.Reader = file
	if strings.HasSuffix(path, ".gz") {
		if in, err = gzip.NewReader(file); err != nil {
			return backtest.Trace{}, fmt.Errorf("unpacking the trace: %w", err)
		}
	}
	rows, err := csv.NewReader(in).ReadAll()
	if err != nil {
		return backtest.Trace{}, fmt.Errorf("reading the trace: %w", err)
	}
	var t backtest.Trace
	tenants := map[string]int{}
	for i, row := range rows[min(1, len(rows)):] {
		j, group, err := parseJob(row)
		if err != nil {
			return t, fmt.Errorf("row %d: %w", i+2, err)
		}
		n, ok := tenants[group]
		if !ok {
			n = len(t.Tenants)
			tenants[group] = n
			t.Tenants = append(t.Tenants, group)
		}
		j.Tenant = n
		t.Jobs = append(t.Jobs, j)
	}
	return t, t.Validate()
}

// Name is what a trace is called: its file without its endings.
func Name(path string) string {
	return strings.TrimSuffix(strings.TrimSuffix(filepath.Base(path), ".gz"), ".csv")
}

// List lists the trace files that a comma-separated list of files and folders names.
func List(list string) ([]string, error) {
	var all []string
	for _, path := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' }) {
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("looking for traces: %w", err)
		}
		if !info.IsDir() {
			all = append(all, path)
			continue
		}
		for _, pattern := range []string{"*.csv", "*.csv.gz"} {
			found, err := filepath.Glob(filepath.Join(path, pattern))
			if err != nil {
				return nil, fmt.Errorf("looking for traces: %w", err)
			}
			all = append(all, found...)
		}
	}
	slices.Sort(all)
	return all, nil
}

// parseJob reads job_id, user, group, submit_ts, duration_s, gpus.
func parseJob(row []string) (backtest.Job, string, error) {
	if len(row) < 6 {
		return backtest.Job{}, "", fmt.Errorf("%d columns, want at least 6", len(row))
	}
	var numbers [3]int64
	for i := range numbers {
		var err error
		if numbers[i], err = strconv.ParseInt(row[3+i], 10, 64); err != nil {
			return backtest.Job{}, "", fmt.Errorf("column %d: %w", 4+i, err)
		}
	}
	return backtest.Job{ID: row[0], Submit: numbers[0], Duration: numbers[1], GPUs: int(numbers[2])}, row[2], nil
}
