package verbs_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger"
)

// heldPool is a store in which somebody else holds a pool, until free is set.
type heldPool struct {
	ledger.Store
	rows ledger.Rows
	free atomic.Bool
}

func (h *heldPool) InTx(ctx context.Context, fn func(ledger.Tx) error) error {
	return h.Store.InTx(ctx, func(tx ledger.Tx) error {
		if !h.free.Load() {
			tx = busy{tx}
		}
		return fn(tx)
	})
}

func (h *heldPool) Held(ctx context.Context, of ledger.Rows) (ledger.Rows, error) {
	if h.free.Load() {
		return h.Store.Held(ctx, of)
	}
	return h.rows, nil
}

type busy struct{ ledger.Tx }

func (busy) Lock(ledger.LockRequest) (ledger.Locked, error) { return ledger.Locked{}, ledger.ErrBusy }

func (busy) Assume(ledger.Assumption) bool { return false }

// Whoever waited for a pool may have given up while it was held. A group of which nobody knew that it would lock that
// pool opens the gate that they left closed: it tried again for ever, and all others of the process waited for it.
func TestAGateThatNobodyWaitsAtOpens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l, g := w.gatedLedger()
	tasks := w.claimCreates() // of nodes that this ledger has not seen
	held := &heldPool{Store: g.Store, rows: ledger.Rows{Pools: []string{w.readPool().ID}}}
	g.Store = held
	impatient, cancel := context.WithTimeout(t.Context(), time.Second) // less than an answer takes
	defer cancel()
	_, err := l.Reserve(impatient, w.newPerson("dora"), ledger.ReserveRequest{Pool: "lab", GPUs: 1, Window: dayWindow(7)})
	require.ErrorIs(t, err, ledger.ErrBusy)
	held.free.Store(true)
	errs := sendTogether(l, g, 2, func(i int) error {
		_, err := l.BeginCreate(t.Context(), guardOf(tasks[i]), tasks[i].Subject)
		return err
	})
	require.Equal(t, []error{nil, nil}, errs)
	require.Len(t, w.readNodes(node.Provisioning), 2)
}
