// Package source is the port through which evidence of past and coming work
// enters the agent: job records and raw log lines, from files that others write.
//
// Every source finds what is new by polling; a file notification is only a hint
// to poll sooner. So a lost notification costs one polling interval and never a
// line.
package source

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/forewarm/forewarm/agent/history"
)

// Line is one raw line of a log. It may hold secrets and hostile text: it must
// pass agent/redact before it goes anywhere.
type Line struct {
	// Source is the name of the source that read it.
	Source string
	// Text is the line without its end, as it was found.
	Text string
	// At is when it was read, in UTC.
	At time.Time
}

// Item is one piece of evidence: exactly one of the two is set.
type Item struct {
	Record *history.Record
	Line   *Line
}

// Source is a place that evidence comes from.
//
//   - Step returns what is new since the last Step, in order, and nothing when
//     nothing is new. It does a bounded amount of work: after a Step that
//     returned items there may be more. Items returned beside an error are valid.
//   - Commit makes the resume positions durable. The caller calls it after it has
//     durably handled every item that Step returned; after a crash, what came
//     since the last Commit is returned again, and nothing is left out.
//   - Close gives up open files. It commits nothing.
//
// A Source is used by one goroutine at a time.
type Source interface {
	// Name is unique inside one agent and stable over restarts.
	Name() string
	Step(ctx context.Context) ([]Item, error)
	Commit() error
	Close() error
	// Watch returns the folders whose changes are worth an early Step.
	Watch() []string
}

// Runner says how to run one source.
type Runner struct {
	Source Source
	// Every is the polling interval; 0 means 5 s.
	Every time.Duration
	// Handle takes the items of one Step. When it fails, nothing is committed and
	// Run ends with its error.
	Handle func(context.Context, []Item) error
	// OnError is told about failed steps, which are tried again at the next
	// interval. It may be nil.
	OnError func(error)
}

// Run steps the source until the context ends, which is no error, or until
// Handle or Commit fails. It closes the source.
func Run(ctx context.Context, r Runner) (err error) {
	defer func() { err = errors.Join(err, r.Source.Close()) }()
	if r.Every <= 0 {
		r.Every = 5 * time.Second
	}
	wake, stop := watchFolders(r.Source.Watch())
	defer stop()
	ticker := time.NewTicker(r.Every)
	defer ticker.Stop()
	for ctx.Err() == nil {
		more, err := r.stepOnce(ctx)
		if err != nil {
			return fmt.Errorf("running source %s: %w", r.Source.Name(), err)
		}
		if more {
			continue
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		case _, ok := <-wake:
			if !ok {
				wake = nil
			}
		}
	}
	return nil
}

// stepOnce does one Step and reports whether another is worth doing at once.
func (r Runner) stepOnce(ctx context.Context) (more bool, err error) {
	items, failed := r.Source.Step(ctx)
	if failed != nil && ctx.Err() == nil && r.OnError != nil {
		r.OnError(fmt.Errorf("reading source %s: %w", r.Source.Name(), failed))
	}
	if len(items) > 0 {
		if err := r.Handle(ctx, items); err != nil {
			return false, err
		}
	}
	if err := r.Source.Commit(); err != nil {
		return false, err
	}
	return len(items) > 0 && failed == nil, nil
}

// watchFolders returns a channel of hints that something changed in the folders. Where
// the system cannot watch, the channel stays silent and polling does the work.
func watchFolders(folders []string) (<-chan fsnotify.Event, func()) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, func() {}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range w.Errors { // A full queue is only a lost hint.
		}
	}()
	for _, f := range folders {
		_ = w.Add(f) // A folder that does not exist yet is polled.
	}
	return w.Events, func() {
		_ = w.Close()
		<-done
	}
}
