package asynqueue

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// quiet is how long asynq's complaints are detail after one was passed on: while
// Redis is away each of its loops complains every few seconds, for ever.
const quiet = time.Minute

// bridge passes asynq's log lines on. What asynq calls info is, to an operator of
// Forewarm, detail, and so are its complaints after the first: nothing is lost
// with its messages, so none is an error here.
type bridge struct {
	log *slog.Logger

	mu   sync.Mutex
	said time.Time
}

func (b *bridge) Debug(args ...any) { b.logDetail(args) }
func (b *bridge) Info(args ...any)  { b.logDetail(args) }
func (b *bridge) Warn(args ...any)  { b.logComplaint(args) }
func (b *bridge) Error(args ...any) { b.logComplaint(args) }
func (b *bridge) Fatal(args ...any) { b.logComplaint(args) }

func (b *bridge) logDetail(args []any) { b.log.Debug("asynq says", "text", formatLine(args)) }

func (b *bridge) logComplaint(args []any) {
	b.mu.Lock()
	now := time.Now() //nolint:forbidigo // of a log line
	again := !b.said.IsZero() && now.Sub(b.said) < quiet
	if !again {
		b.said = now
	}
	b.mu.Unlock()
	if again {
		b.logDetail(args)
		return
	}
	b.log.Warn("the Redis queue has trouble; work continues without it", "error", formatLine(args))
}

// formatLine is what asynq prints, on one line.
func formatLine(args []any) string { return strings.Join(strings.Fields(fmt.Sprint(args...)), " ") }
