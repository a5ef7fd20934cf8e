package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/forewarm/forewarm/ledger"
)

// Watermark remembers, in a file beside the worker, how far the journal had
// come. A journal that is shorter than it once was belongs to a database that
// was restored from a backup: every pool then only reconciles (see
// ledger.BeginRecovery) before anything is done on its word.
//
// Losing the file loses only this warning; the sweep has another.
type Watermark struct {
	ledger *ledger.Ledger
	path   string
	log    *slog.Logger
	saved  mark
}

// mark is the file's content. The first organization tells one database from
// another that was begun anew.
type mark struct {
	First string `json:"first"`
	Seq   int64  `json:"seq"`
}

// NewWatermark returns the watermark kept in the file at path. A nil logger
// means slog.Default().
func NewWatermark(l *ledger.Ledger, path string, log *slog.Logger) *Watermark {
	if log == nil {
		log = slog.Default()
	}
	return &Watermark{ledger: l, path: path, log: log}
}

// Check compares the journal with the mark, has every pool only reconcile if the
// journal lost its end, and moves the mark. It is called before the first task.
func (w *Watermark) Check(ctx context.Context) error {
	before, err := w.load()
	if err != nil {
		return err
	}
	now, err := w.read(ctx)
	if err != nil {
		return err
	}
	if before.First == now.First && now.Seq < before.Seq {
		reason := fmt.Sprintf("the journal ends at event %d, and had come to %d: the database was restored from a backup", now.Seq, before.Seq)
		began, err := w.ledger.BeginRecovery(ctx, ledger.SystemActor("reconcile"), "", reason)
		if err != nil {
			return fmt.Errorf("stopping what acts on a restored database: %w", err)
		}
		w.log.ErrorContext(ctx, reason+"; pools only reconcile until `forewarm recovery confirm`", "pools", began)
		if now, err = w.read(ctx); err != nil {
			return err
		}
	}
	if err := w.save(now); err != nil { // a folder that cannot be written is no reason not to work
		w.log.WarnContext(ctx, "a restored database will not be noticed at the start", "error", err)
	}
	return nil
}

// Step moves the mark.
func (w *Watermark) Step(ctx context.Context) error {
	now, err := w.read(ctx)
	if err != nil || now == w.saved {
		return err
	}
	return w.save(now)
}

// Run checks until it can, then steps until ctx ends. ready is called once,
// after the check.
func (w *Watermark) Run(ctx context.Context, every time.Duration, ready func()) {
	step, done := w.Check, ready
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if err := step(ctx); err == nil {
			done()
			step, done = w.Step, func() {}
		} else if ctx.Err() == nil {
			w.log.ErrorContext(ctx, "could not compare the journal with how far it had come; trying again", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (w *Watermark) read(ctx context.Context) (now mark, err error) {
	err = w.ledger.Store().Read(ctx, func(r ledger.Reader) error {
		first, err := r.Organizations(ledger.Scope{All: true}, ledger.Page{Limit: 1})
		if err != nil {
			return err
		}
		if len(first) > 0 {
			now.First = first[0].ID
		}
		now.Seq, err = r.JournalEnd()
		return err
	})
	if err != nil {
		return now, fmt.Errorf("reading how far the journal has come: %w", err)
	}
	return now, nil
}

func (w *Watermark) load() (before mark, err error) {
	data, err := os.ReadFile(w.path)
	if errors.Is(err, fs.ErrNotExist) {
		return before, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &before)
	}
	if err != nil {
		return before, fmt.Errorf("reading how far the journal had come, from %s: %w; remove the file if that does not matter", w.path, err)
	}
	return before, nil
}

func (w *Watermark) save(now mark) error {
	data, err := json.Marshal(now)
	if err != nil {
		return fmt.Errorf("writing how far the journal has come: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(w.path), 0o700); err != nil {
		return fmt.Errorf("writing how far the journal has come: %w", err)
	}
	fresh := w.path + ".new" // a file is either the old one or the new one
	if err := os.WriteFile(fresh, data, 0o600); err != nil {
		return fmt.Errorf("writing how far the journal has come: %w", err)
	}
	if err := os.Rename(fresh, w.path); err != nil {
		return fmt.Errorf("writing how far the journal has come: %w", err)
	}
	w.saved = now
	return nil
}
