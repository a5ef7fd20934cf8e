package gpu_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/gpu"
)

func TestLayouts(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		gpus int
		l    gpu.Layout
		want string
	}{
		{5, gpu.Layout{}, "1×4+1"},
		{5, gpu.Layout{Even: true}, "5×1"},
		{6, gpu.Layout{Even: true}, "2×3"},
		{5, gpu.Layout{Nodes: 2}, "1×3+2"},
		{4, gpu.Layout{Nodes: 4}, "4×1"},
		{5, gpu.Layout{Nodes: 4}, ""}, // 2, 1, 1 and 1: more than one has fewer
		{5, gpu.Layout{PerNode: 2}, "2×2+1"},
		{1, gpu.Layout{PerNode: 2}, "1×1"},
		{0, gpu.Layout{Nodes: 2, PerNode: 3}, "2×3"},
		{5, gpu.Layout{Nodes: 2, PerNode: 4}, "1×4+1"},
		{5, gpu.Layout{Nodes: 2, PerNode: 4, Even: true}, ""},
		{9, gpu.Layout{Nodes: 2, PerNode: 4}, ""},
		{4, gpu.Layout{Nodes: 2, PerNode: 4}, ""}, // nothing is left for the last
		{8, gpu.Layout{Nodes: 1, PerNode: 8}, "1×8"},
		{0, gpu.Layout{}, ""},
	} {
		shape, ok := tc.l.Shape(tc.gpus, 4)
		require.Equal(t, tc.want != "", ok, "%d GPUs, %+v", tc.gpus, tc.l)
		if ok {
			require.Equal(t, tc.want, shape.String())
		}
	}
}
