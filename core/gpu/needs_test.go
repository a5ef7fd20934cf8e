package gpu_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/gpu"
)

func TestNeeds(t *testing.T) {
	t.Parallel()
	pool := gpu.Pool{Region: "eu-1", MemoryMiB: 40 << 10, NodeMemoryMiB: 512 << 10}
	for name, tc := range map[string]struct {
		needs gpu.Needs
		unmet gpu.Need
	}{
		"nothing":                   {gpu.Needs{}, ""},
		"just what it has":          {gpu.Needs{Region: "eu-1", MemoryMiB: 40 << 10, NodeMemoryMiB: 512 << 10}, ""},
		"another region":            {gpu.Needs{Region: "eu-2"}, gpu.NeedRegion},
		"larger GPUs":               {gpu.Needs{MemoryMiB: 40<<10 + 1}, gpu.NeedMemory},
		"larger nodes":              {gpu.Needs{NodeMemoryMiB: 512<<10 + 1}, gpu.NeedNodeMemory},
		"several: the first counts": {gpu.Needs{Region: "us", MemoryMiB: 1 << 30}, gpu.NeedRegion},
	} {
		require.Equal(t, tc.unmet, tc.needs.Unmet(pool), name)
	}
	require.Equal(t, gpu.NeedNodeMemory, gpu.Needs{NodeMemoryMiB: 1}.Unmet(gpu.Pool{}),
		"what is not known is not promised")
}
