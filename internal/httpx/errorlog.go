package httpx

import (
	"log"
	"log/slog"
	"strings"
)

// NewErrorLog returns a log for what net/http says of a server: warnings to a logger. Times of retries
// are left out, so that what is said again is the same, and held back where the logger does that.
func NewErrorLog(l *slog.Logger) *log.Logger { return log.New(warnings{l}, "", 0) }

type warnings struct{ log *slog.Logger }

// Write implements io.Writer.
func (w warnings) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	if said, _, found := strings.Cut(text, "; retrying in "); found {
		text = said
	}
	w.log.Warn("HTTP server: " + strings.TrimPrefix(text, "http: "))
	return len(line), nil
}
