// Package memory sets how much memory a serving process trades for time.
package memory

import (
	"os"
	"runtime/debug"
)

// growth is by how many percent the heap of a serving process grows before it is
// collected. What such a process keeps are live rows and calendars: they are
// marked in every collection and almost never free anything, while what requests
// leave behind is small. Go's own 100 spends a tenth of the processors on that.
const growth = 300

// Relax has the heap grow further between collections than Go's default. An
// operator's GOGC is left alone, and GOMEMLIMIT bounds it as ever.
func Relax() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(growth)
	}
}
