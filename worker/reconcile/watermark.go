package reconcile

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/forewarm/forewarm/internal/statefile"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
)

// Watermark remembers, in a file beside the process, how far the journal had
// come. A journal that is shorter than it once was belongs to a database that was
// restored from a backup: every pool then only reconciles (see
// ledger.BeginRecovery) before anything is done on its word.
//
// Losing the file loses only this warning; the sweep has another. What the sweep
// cannot see is a lease that was lost on a machine that is not: the mark alone
// keeps its GPUs from being given to a second holder. So it is written within a
// second of any event, and at the end.
type Watermark struct {
	ledger *verbs.Ledger
	path   string
	log    *slog.Logger

	mu      sync.Mutex
	checked bool // the file was compared with the journal
	seen    mark // how far the journal had come
	kept    bool // the file says so
}

// mark is the file's content. The first organization tells one database from
// another that was begun anew.
type mark struct {
	First string `json:"first"`
	Seq   int64  `json:"seq"`
}

// markEvery is how far the mark may be behind the journal.
const markEvery = time.Second

// lastMark is how long the mark may take when the process ends.
const lastMark = 2 * time.Second

// NewWatermark returns the watermark kept in the file at path. A nil logger
// means slog.Default().
func NewWatermark(l *verbs.Ledger, path string, log *slog.Logger) *Watermark {
	if log == nil {
		log = slog.Default()
	}
	return &Watermark{ledger: l, path: path, log: log}
}

// Step compares the journal with the mark, the first time with the file's, has
// every pool only reconcile if the journal lost its end, and moves the mark. It is
// called before the first task. A database that is restored while we run is noticed
// as well.
func (w *Watermark) Step(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.seen
	if !w.checked {
		var err error
		if before, err = w.loadMark(); err != nil {
			return err
		}
	}
	now, err := w.readMark(ctx)
	if err != nil {
		return err
	}
	if before.First == now.First && now.Seq < before.Seq {
		if now, err = w.enterRecovery(ctx, before, now); err != nil {
			return err
		}
	}
	w.saveMark(ctx, now)
	return nil
}

// saveMark moves the mark. A folder that cannot be written is no reason not to work.
func (w *Watermark) saveMark(ctx context.Context, now mark) {
	if w.checked && w.kept && now == w.seen {
		return
	}
	err := statefile.Write(w.path, now)
	if err != nil && (w.kept || !w.checked) {
		w.log.WarnContext(ctx, "a restored database will not be noticed", "error", err)
	}
	w.seen, w.checked, w.kept = now, true, err == nil
}

// enterRecovery has every pool only reconcile, and reads again how far the journal is.
func (w *Watermark) enterRecovery(ctx context.Context, before, now mark) (mark, error) {
	reason := fmt.Sprintf("the journal ends at event %d, and had come to %d: the database was restored from a backup",
		now.Seq, before.Seq)
	if _, err := w.ledger.BeginRecovery(ctx, ledger.SystemActor("reconcile"), "", reason); err != nil {
		return now, fmt.Errorf("stopping what acts on a restored database: %w", err)
	}
	recovering, err := w.countRecovering(ctx)
	if err != nil {
		return now, err
	}
	w.log.ErrorContext(ctx, reason+"; pools only reconcile until `forewarm recovery confirm`", "pools", recovering)
	return w.readMark(ctx)
}

// countRecovering counts the pools that only reconcile, whichever process had them do so.
func (w *Watermark) countRecovering(ctx context.Context) (n int, err error) {
	err = w.ledger.Store().Read(ctx, func(r ledger.Reader) error {
		pools, err := r.Pools(ledger.Page{})
		n = 0
		for _, p := range pools {
			if p.Recovery.Active() {
				n++
			}
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("counting the pools that only reconcile: %w", err)
	}
	return n, nil
}

// Run steps until ctx ends. ready is called once, after the first step that
// worked.
func (w *Watermark) Run(ctx context.Context, ready func()) {
	done, trouble := ready, false
	tick := time.NewTicker(markEvery)
	defer tick.Stop()
	for {
		err := w.Step(ctx)
		if err == nil {
			done()
			done = func() {}
		} else if ctx.Err() == nil && !trouble { // once an outage
			w.log.WarnContext(ctx, "could not compare the journal with how far it had come; trying again", "error", err)
		}
		trouble = err != nil
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Finish moves the mark when all else has ended, so that nothing that this process
// did is beyond it.
func (w *Watermark) Finish(ctx context.Context) {
	w.mu.Lock()
	checked := w.checked
	w.mu.Unlock()
	if !checked { // nothing was done on the database's word
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastMark)
	defer cancel()
	if err := w.Step(ctx); err != nil {
		w.log.WarnContext(ctx, "the mark of the journal's end is up to a second old", "error", err)
	}
}

func (w *Watermark) readMark(ctx context.Context) (now mark, err error) {
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

func (w *Watermark) loadMark() (before mark, err error) {
	if _, err = statefile.Read(w.path, &before); err != nil {
		return before, fmt.Errorf("reading how far the journal had come: %w", err)
	}
	return before, nil
}
