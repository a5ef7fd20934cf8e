package slurm

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// separator ends every column of what squeue, sinfo and sacct are asked for: the
// one character that is in no name, reason or comment, whatever else is.
//
// Their --json is not used: squeue and sinfo of 22.05 ignore their filters with
// it and print the whole cluster, and its shape differs from release to release.
const separator = "\x1f"

// column is one column of a --Format, with a width that cuts nothing of ours:
// without one, Slurm cuts at 20 characters.
type column struct {
	name  string
	width int
}

// formatColumns is the argument of --Format for the columns.
func formatColumns(columns []column) string {
	parts := make([]string, len(columns))
	for i, column := range columns {
		parts[i] = fmt.Sprintf("%s:%d%s", column.name, column.width, separator)
	}
	return strings.Join(parts, ",")
}

// cutRows cuts the output into rows of that many columns. It is whole when the
// output ends where a row ends.
func cutRows(output string, columns int) (rows [][]string, whole bool) {
	if output == "" {
		return nil, true
	}
	cells := strings.Split(output, separator)
	last := len(cells) - 1 // after the last separator: the end of its line
	for from := 0; from+columns <= last; from += columns {
		row := make([]string, columns)
		for i := range row {
			row[i] = strings.Trim(cells[from+i], " \n")
		}
		rows = append(rows, row)
	}
	return rows, last%columns == 0 && cells[last] == "\n"
}

// parseInstant reads a time in seconds since 1970. Slurm has many words for none.
func parseInstant(text string) (time.Time, error) {
	switch strings.ToLower(text) {
	case "", "n/a", "none", "unknown", "(null)":
		return time.Time{}, nil
	}
	seconds, err := strconv.ParseUint(text, 10, 40)
	if err != nil {
		return time.Time{}, fmt.Errorf("%.40q is not a time: %w", text, err)
	}
	if seconds == 0 {
		return time.Time{}, nil
	}
	return time.Unix(int64(seconds), 0).UTC(), nil
}
