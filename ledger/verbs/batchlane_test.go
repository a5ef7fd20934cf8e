package verbs_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/ledger"
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
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for i := range 3 {
		_, err := l.Reserve(ctx, bob, ledger.ReserveRequest{Pool: "lab", GPUs: 1, Window: dayWindow(20 + i)})
		require.NoError(t, err, "the batch is still at work")
	}
	release()
	batch.Wait()
	require.Equal(t, 254, w.countBooked(), "one was there before")
}
