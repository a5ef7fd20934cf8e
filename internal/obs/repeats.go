package obs

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"strings"
	"sync"
	"time"
)

const (
	// repeatAfter is how long a warning or an error is not written again, as long as nothing of it changes: a loop that
	// fails on a database without room says the same twenty times a second, and what else happens is lost in it.
	repeatAfter = 30 * time.Second
	// mostRepeats bounds how many are remembered.
	mostRepeats = 1000
)

// repeats holds back warnings and errors that are the same as one written a while ago, but for their time. The next one
// that is written has how many were held back, as repeated.
type repeats struct {
	inner  slog.Handler
	scope  string // the attributes and groups of the logger
	memory *repeatMemory
}

type repeatMemory struct {
	mu   sync.Mutex
	said map[[sha256.Size]byte]*repeat // by what was said, which may be long
}

// repeat is a line that was written.
type repeat struct {
	at   time.Time
	held int // times that it was not written since
}

func holdRepeats(inner slog.Handler) slog.Handler {
	return repeats{inner: inner, memory: &repeatMemory{said: map[[sha256.Size]byte]*repeat{}}}
}

func (h repeats) Enabled(ctx context.Context, level slog.Level) bool {
	return h.inner.Enabled(ctx, level)
}

func (h repeats) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelWarn {
		return h.inner.Handle(ctx, r)
	}
	var key strings.Builder
	key.WriteString(h.scope + "\x00" + r.Level.String() + "\x00" + r.Message)
	r.Attrs(func(a slog.Attr) bool {
		key.WriteString("\x00" + a.String())
		return true
	})
	held, write := h.memory.note(sha256.Sum256([]byte(key.String())), r.Time)
	if !write {
		return nil
	}
	if held > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("repeated", held))
	}
	return h.inner.Handle(ctx, r)
}

// note says whether a line is to be written at a time, and how many like it were not since the last one.
func (m *repeatMemory) note(key [sha256.Size]byte, at time.Time) (held int, write bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	last, known := m.said[key]
	if known && at.Sub(last.at).Abs() < repeatAfter {
		last.held++
		return 0, false
	}
	if known {
		held = last.held
	}
	if !known && len(m.said) >= mostRepeats {
		m.forget(at)
	}
	m.said[key] = &repeat{at: at}
	return held, true
}

// forget makes room, if only by forgetting what was written lately: a line too many is better than one too few.
func (m *repeatMemory) forget(now time.Time) {
	for key, last := range m.said {
		if now.Sub(last.at).Abs() >= repeatAfter {
			delete(m.said, key)
		}
	}
	if len(m.said) >= mostRepeats {
		clear(m.said)
	}
}

func (h repeats) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		h.scope += "\x00" + a.String()
	}
	h.inner = h.inner.WithAttrs(attrs)
	return h
}

func (h repeats) WithGroup(name string) slog.Handler {
	h.scope += "\x01" + name
	h.inner = h.inner.WithGroup(name)
	return h
}
