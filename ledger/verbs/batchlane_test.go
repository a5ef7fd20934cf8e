package verbs_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
)

// holdFirstTransaction has only the next transaction wait until release is called.
// begun returns when it is there.
func (g *gate) holdFirstTransaction() (begun, release func()) {
	held := make(chan struct{})
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held, g.transactions = held, 0
	begun = func() {
		for g.letOthersPass() {
			runtime.Gosched()
		}
	}
	return begun, func() { close(held) }
}

// letOthersPass opens the gate once a transaction waits at it, and reports whether
// none does.
func (g *gate) letOthersPass() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.transactions == 0 {
		return true
	}
	g.held = nil
	return false
}

func TestNobodyWaitsForALargeBatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l, g := w.gatedLedger()
	ann, bob := w.newPerson("ann"), w.newPerson("bob")
	begun, release := g.holdFirstTransaction()
	var batch sync.WaitGroup
	batch.Go(func() {
		_, err := l.ReserveMany(t.Context(), ann, hourlyBatch(250))
		require.NoError(t, err)
	})
	begun()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for i := range 3 {
		_, err := l.Reserve(ctx, bob, ledger.ReserveRequest{Pool: "lab", GPUs: 1, Window: dayWindow(20 + i)})
		require.NoError(t, err, "the batch is still at work")
	}
	release()
	batch.Wait()
	require.Equal(t, 254, w.countBooked(), "one was there before")
}

// waitAtGates returns when n verbs wait for rows that somebody else holds.
func waitAtGates(l *verbs.Ledger, n int) {
	for _, row := l.Waiting(); row < n; _, row = l.Waiting() {
		runtime.Gosched()
	}
}

func TestNobodyWaitsForMoreThanOneLargeBatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l, g := w.gatedLedger()
	ann, bob := w.newLimitedPerson("ann", quota.Limits{GPUs: 4}), w.newPerson("bob")
	_, err := l.ReserveMany(t.Context(), ann, askTooMuch(250)) // now both engines know the pool
	require.NoError(t, err)
	begun, release := g.holdFirstTransaction()
	var all sync.WaitGroup
	for i := range 3 {
		all.Go(func() {
			_, err := l.ReserveMany(t.Context(), ann, askTooMuch(250))
			require.NoError(t, err)
		})
		if i == 0 {
			begun()
		} else {
			waitForQueue(l, i)
		}
	}
	for i := range 2 {
		all.Go(func() {
			_, err := l.Reserve(t.Context(), bob, ledger.ReserveRequest{Pool: "lab", GPUs: 1, Window: dayWindow(20 + i)})
			require.NoError(t, err)
		})
		waitAtGates(l, i+1)
	}
	release()
	all.Wait()
	batches := w.readEvents("requests.refused")
	require.Len(t, batches, 4)
	var booked int
	for _, e := range w.readEvents("reservation.booked") {
		if e.Actor != bob.KeyID {
			continue
		}
		booked++
		require.Greater(t, e.Seq, batches[1].Seq, "it waited for the batch that was at work")
		require.Less(t, e.Seq, batches[2].Seq, "and for no other")
	}
	require.Equal(t, 2, booked)
	turn, row := l.Waiting()
	require.Zero(t, turn+row)
}
