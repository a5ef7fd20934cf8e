// Package ledgermetrics turns what the ledger commits and holds into numbers for
// Prometheus: a Store that tells a Recorder what was committed through it, and a
// Collector that reads what there is when it is scraped.
package ledgermetrics

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/ledger"
)

// Recorder is told of what was committed, after the commit and in the process that
// committed it. It must not block; it is called concurrently.
type Recorder interface {
	// Transition is told of one journalled event: the kind of its subject, such as
	// node, and what became of it, such as ready.
	Transition(subject, event string)
	// Wait is told how long an allocation waited for its GPUs, when it gets them.
	Wait(d time.Duration)
}

// Observe returns a store whose committed changes the recorder is told of.
func Observe(store ledger.Store, r Recorder) ledger.Store {
	return &observedStore{Store: store, recorder: r}
}

type observedStore struct {
	ledger.Store
	recorder Recorder
}

// collected is what one transaction has saved.
type collected struct {
	events []ledger.Event
	active map[string]time.Duration // how long allocations that are active now had waited, by id
}

// InTx runs fn like the store below, and tells the recorder once it is committed.
func (s *observedStore) InTx(ctx context.Context, fn func(tx ledger.Tx) error) error {
	saved := &collected{}
	err := s.Store.InTx(ctx, func(tx ledger.Tx) error {
		*saved = collected{} // the database may have asked for another try
		return fn(&observedTx{Tx: tx, saved: saved})
	})
	if err == nil {
		s.recordCommitted(saved)
	}
	return err
}

func (s *observedStore) recordCommitted(saved *collected) {
	for _, e := range saved.events {
		subject, event, _ := strings.Cut(e.Type, ".")
		s.recorder.Transition(subject, event)
		if wait, ok := saved.active[e.Subject]; ok && e.Type == "allocation.active" {
			s.recorder.Wait(wait)
		}
	}
}

type observedTx struct {
	ledger.Tx
	saved *collected
}

// Nested has what fn saves noted too.
func (t *observedTx) Nested(fn func(tx ledger.Tx) error) error {
	return t.Tx.Nested(func(tx ledger.Tx) error { return fn(&observedTx{Tx: tx, saved: t.saved}) })
}

// Save saves the change and notes what the recorder has to know of it.
func (t *observedTx) Save(c ledger.Change) error {
	if err := t.Tx.Save(c); err != nil {
		return err
	}
	t.saved.events = slices.Concat(t.saved.events, c.Events)
	for _, a := range c.Allocations {
		if wait, served := a.Wait(); served && a.State() == allocation.Active {
			if t.saved.active == nil {
				t.saved.active = map[string]time.Duration{}
			}
			t.saved.active[a.ID] = wait
		}
	}
	return nil
}
