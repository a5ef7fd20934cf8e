package capacity_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/capacity"
)

func TestNeeds(t *testing.T) {
	t.Parallel()
	pool := capacity.Pool{Region: "eu-1", MemoryMiB: 40 << 10, NodeMemoryMiB: 512 << 10}
	for name, tc := range map[string]struct {
		needs capacity.Needs
		unmet capacity.Need
	}{
		"nothing": {capacity.Needs{}, ""},
		"just what it has": {capacity.Needs{Region: "eu-1", MemoryMiB: 40 << 10, NodeMemoryMiB: 512 << 10},
			""},
		"another region":            {capacity.Needs{Region: "eu-2"}, capacity.NeedRegion},
		"larger GPUs":               {capacity.Needs{MemoryMiB: 40<<10 + 1}, capacity.NeedMemory},
		"larger nodes":              {capacity.Needs{NodeMemoryMiB: 512<<10 + 1}, capacity.NeedNodeMemory},
		"several: the first counts": {capacity.Needs{Region: "us", MemoryMiB: 1 << 30}, capacity.NeedRegion},
	} {
		require.Equal(t, tc.unmet, tc.needs.Unmet(pool), name)
	}
	require.Equal(t, capacity.NeedNodeMemory, capacity.Needs{NodeMemoryMiB: 1}.Unmet(capacity.Pool{}),
		"what is not known is not promised")
}
