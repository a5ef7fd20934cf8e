package verbs_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/ledger"
)

// What a smaller pool has no slot for is not free, for nobody can have it.
func TestWhatAPoolHasNoSlotForIsNotFree(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	w.warmNodes(2)
	w.allocateFor(ann, 1, boot)
	counts := func() (c ledger.Counts) {
		w.read(func(r ledger.Reader) error {
			state, err := r.PoolState(w.pool.ID)
			c = ledger.CountDevices(state.Devices(w.clock.Now()))
			return err
		})
		return c
	}
	require.Equal(t, ledger.Counts{Free: 3, Held: 1}, counts())
	w.changePool(func(p *capacity.Pool) { p.MaxNodes = 1 })
	require.Equal(t, ledger.Counts{Free: 1, Held: 1, Unavailable: 2}, counts())
}
