package main_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// Without a file, a flag or another service, GPUs can be had: this machine's, or
// simulated ones that say so.
func TestUpWithoutAnything(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	p, _, api := h.startUp(t, "--data-dir", h.dataDir(), "--listen", "127.0.0.1:0")
	pool, err := api.Pool(t.Context(), "local")
	require.NoError(t, err)
	assert.Positive(t, pool.GPUsPerNode)

	a, err := api.Allocate(t.Context(), contract.AllocationCreate{Pool: "local", GPUs: pool.GPUsPerNode},
		client.Options{})
	require.NoError(t, err)
	eventually(t, patience, func() string {
		if a, err = api.Allocation(t.Context(), a.ID); err != nil {
			return err.Error()
		}
		if a.State != "active" {
			return "the allocation is " + a.State
		}
		return ""
	})
	assert.Len(t, a.Devices, pool.GPUsPerNode)
	again, err := api.Allocate(t.Context(), contract.AllocationCreate{Pool: "local", GPUs: 1}, client.Options{})
	assert.ErrorContains(t, err, "free", "all are taken: %v", again)
	_, err = api.Release(t.Context(), a.ID)
	require.NoError(t, err)
	warm, err := api.Allocate(t.Context(), contract.AllocationCreate{Pool: "local", GPUs: 1}, client.Options{})
	require.NoError(t, err)
	assert.Equal(t, "active", warm.State, "the machine is still warm")
	require.Zero(t, p.stop(t, ending), p.errors.String())
}
