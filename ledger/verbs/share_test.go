package verbs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/ledger"
)

// A share cannot be cut below what its workload has booked, but by force: then it
// is cut, and the journal says what is beyond it.
func TestAShareIsNotCutBelowWhatIsBooked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	split := func(online int, update func(share func(*capacity.Pool)) (ledger.Pool, error)) error {
		p, err := update(func(p *capacity.Pool) { p.OnlineShare = online })
		if err == nil {
			w.pool = p
		}
		return err
	}
	gently := func(share func(*capacity.Pool)) (ledger.Pool, error) {
		return w.ledger.UpdatePool(t.Context(), operator, "lab", w.pool.DefinitionVersion, share)
	}
	require.NoError(t, split(500, gently))
	_, err := w.ledger.Allocate(t.Context(), ann, ledger.AllocateRequest{Pool: "lab", GPUs: 4, Lease: time.Hour,
		Workload: capacity.Batch})
	require.NoError(t, err)

	var taken *ledger.ShareTakenError
	require.ErrorAs(t, split(900, gently), &taken)
	require.Equal(t, []ledger.TakenShare{{Workload: capacity.Batch, Share: 1, Booked: 4}}, taken.Taken)
	require.NoError(t, split(taken.Closest, gently), "what is offered holds")
	require.NoError(t, split(400, gently))
	require.Error(t, split(900, gently))
	require.NoError(t, split(900, func(share func(*capacity.Pool)) (ledger.Pool, error) {
		return w.ledger.ForcePool(t.Context(), operator, "lab", w.pool.DefinitionVersion, share)
	}))
	updates := w.readEvents("pool.updated")
	require.Contains(t, updates[len(updates)-1].Message, "batch has 3 GPUs booked beyond its share of 1")
}
