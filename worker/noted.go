package worker

import (
	"context"
	"time"

	"github.com/forewarm/forewarm/ledger"
)

// How often a worker says that it is there, and how long it is believed: a database that
// is busy for a while makes no worker look gone.
const (
	notedEvery = 5 * time.Second
	notedLife  = 30 * time.Second
)

// keepNoted says that this worker is there until ctx ends, and then that it is not.
func (w *Worker) keepNoted(ctx context.Context) {
	if w.cfg.Holder == "" {
		return
	}
	tick := time.NewTicker(notedEvery)
	defer tick.Stop()
	for {
		w.noteWorker(ctx, notedLife)
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), notedEvery)
			defer cancel()
			w.noteWorker(last, 0)
			return
		case <-tick.C:
		}
	}
}

func (w *Worker) noteWorker(ctx context.Context, life time.Duration) {
	bounded, cancel := context.WithTimeout(ctx, notedEvery)
	defer cancel()
	err := w.ledger.NoteWorker(bounded, ledger.Worker{ID: w.cfg.Holder, Host: w.cfg.Host}, life)
	if err != nil && ctx.Err() == nil {
		w.cfg.Logger.WarnContext(ctx, "could not note that this worker is there; trying again", "error", err)
	}
}
