package ledgertest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/ledger"
)

// awaitEvents reads until there are n events: transactions of other tests on the
// same server may hold them back.
func awaitEvents(w *world, n int) []ledger.Event {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
	defer cancel()
	for {
		events := readEvents(w, 0)
		if len(events) >= n {
			require.Len(w, events, n)
			return events
		}
		require.NoError(w, ctx.Err(), "events do not become visible")
	}
}

// readEvents reads all events after a number.
func readEvents(w *world, after int64) []ledger.Event {
	w.Helper()
	return readValue(w, func(r ledger.Reader) ([]ledger.Event, error) {
		return r.Events(everything, ledger.EventFilter{After: after}, 500)
	})
}

func eventsAreInOrder(w *world) {
	want := []ledger.Event{newEvent("org_1", "nod_1"), newEvent("", "pol_1"), newEvent("org_1", "rsv_1"),
		newEvent("org_2", "nod_1")}
	want[1].Type, want[2].Type, want[3].Type = "node.gone", "reservation.ready", "nodes"
	w.mustSave(ledger.Change{Events: want[:3]})
	w.mustSave(ledger.Change{Events: want[3:]})
	got := awaitEvents(w, 4)
	for i := range got {
		require.Positive(w, got[i].Seq)
		if i > 0 {
			require.Greater(w, got[i].Seq, got[i-1].Seq)
		}
		want[i].Seq = got[i].Seq
	}
	require.Equal(w, want, got)
	for _, c := range []struct {
		scope  ledger.Scope
		filter ledger.EventFilter
		limit  int
		want   []ledger.Event
	}{
		{everything, ledger.EventFilter{After: got[1].Seq}, 50, got[2:]},
		{everything, ledger.EventFilter{}, 2, got[:2]},
		{everything, ledger.EventFilter{Subject: "nod_1"}, 0, []ledger.Event{got[0], got[3]}},
		{everything, ledger.EventFilter{Type: "node."}, 0, got[:2]},
		{everything, ledger.EventFilter{Type: "n%"}, 0, []ledger.Event{}},
		{ledger.Scope{OrganizationID: "org_1"}, ledger.EventFilter{Subject: "nod_1"}, 0, got[:1]},
	} {
		w.readSnapshot(func(r ledger.Reader) error {
			events, err := r.Events(c.scope, c.filter, c.limit)
			require.Equal(w, c.want, events, "%+v", c.filter)
			return err
		})
	}
}

// aFollowerMissesNone reads while many write. Numbers are given out in one order
// and committed in another, and a reader that goes by the last one it saw must
// still see every event, once, in order.
func aFollowerMissesNone(w *world) {
	const writers, each = 8, 15
	var group sync.WaitGroup
	failures := make(chan error, writers*each)
	for writer := range writers {
		group.Go(func() {
			for i := range each {
				failures <- w.inTx(func(tx ledger.Tx) error {
					if err := tx.Save(ledger.Change{Events: []ledger.Event{newEvent("org_1",
						fmt.Sprintf("%d/%d", writer, i))}}); err != nil {
						return err
					}
					for range writer { // some take longer from the number to the commit
						if _, err := tx.Tasks(); err != nil {
							return err
						}
					}
					return nil
				})
			}
		})
	}
	seen := map[string]bool{}
	last := int64(0)
	ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
	defer cancel()
	for len(seen) < writers*each {
		for _, e := range readEvents(w, last) {
			require.Greater(w, e.Seq, last)
			require.False(w, seen[e.Subject], "%s came twice", e.Subject)
			last, seen[e.Subject] = e.Seq, true
		}
		require.NoError(w, ctx.Err(), "saw %d of %d", len(seen), writers*each)
	}
	group.Wait()
	close(failures)
	for err := range failures {
		require.NoError(w, err)
	}
}
