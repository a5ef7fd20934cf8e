package verbs_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/ledger"
)

func TestNobodyIsHandedGPUsOfAnObservedPool(t *testing.T) {
	t.Parallel()
	w := newCluster(t)
	r := w.warm(w.ann, 2)
	w.begin("17", "vision", 0, 2, "")
	w.observe()
	var observed *ledger.ObservedPoolError
	_, err := w.ledger.Allocate(t.Context(), w.ann, ledger.AllocateRequest{Pool: "lab", GPUs: 1})
	require.ErrorAs(t, err, &observed)
	_, err = w.ledger.Allocate(t.Context(), w.ann, ledger.AllocateRequest{Model: "h100", GPUs: 1})
	require.ErrorAs(t, err, &observed)
	_, err = w.ledger.Claim(t.Context(), w.ann, r.ID, 0, "")
	require.ErrorAs(t, err, &observed)
	_, err = w.ledger.Release(t.Context(), w.ann, w.workOf("17").ID)
	require.ErrorAs(t, err, &observed)
	_, err = w.ledger.Extend(t.Context(), w.ann, w.workOf("17").ID, time.Hour)
	require.ErrorAs(t, err, &observed)
}

func TestObservedWorkIsNobodysQuota(t *testing.T) {
	t.Parallel()
	w := newCluster(t)
	for i := range 60 { // of 100 GPUs that ann may hold
		w.begin(fmt.Sprint(i), "vision", 0, 2, "")
	}
	w.observe()
	w.mustReserve(w.ann, 8, w.windowAfter(time.Hour, 2*time.Hour))
	for i := range 60 {
		w.end(fmt.Sprint(i))
	}
	require.Equal(t, 60, w.observe().Ended)
	w.read(func(r ledger.Reader) error {
		c, err := r.Commitments(w.ann.OrganizationID)
		require.Equal(t, int64(2), c.All.On(w.clock.Now()).GPUSeconds/3600/4, "the reservation, and nothing else")
		return err
	})
}
