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

func TestWhatAShapeIs(t *testing.T) {
	t.Parallel()
	for shape, want := range map[gpu.Shape]struct {
		valid             bool
		gpus, full, least int
	}{
		{Nodes: 1, PerNode: 1}:            {true, 1, 1, 1},
		{Nodes: 3, PerNode: 8}:            {true, 24, 3, 8},
		{Nodes: 3, PerNode: 8, Short: 7}:  {true, 17, 2, 1},
		{Nodes: 2, PerNode: 8, Short: 1}:  {true, 15, 1, 7},
		{Nodes: 2, PerNode: 8, Short: 8}:  {false, 8, 1, 0},
		{Nodes: 1, PerNode: 8, Short: 1}:  {false, 7, 0, 7},
		{Nodes: 2, PerNode: 8, Short: -1}: {false, 17, 2, 9},
		{Nodes: 0, PerNode: 8}:            {false, 0, 0, 8},
		{Nodes: 8, PerNode: 0}:            {false, 0, 8, 0},
		{Nodes: -1, PerNode: -1}:          {false, 1, -1, -1},
	} {
		require.Equal(t, want.valid, shape.Valid(), "%+v", shape)
		require.Equal(t, []int{want.gpus, want.full, want.least}, []int{shape.GPUs(), shape.Full(), shape.Least()},
			"%+v", shape)
	}
}

func TestALayoutRefusesWhatIsNegative(t *testing.T) {
	t.Parallel()
	for _, l := range []gpu.Layout{{Nodes: -1}, {PerNode: -1}, {Nodes: -2, PerNode: -2}} {
		for _, gpus := range []int{0, 1, 4} {
			_, ok := l.Shape(gpus, 4)
			require.False(t, ok, "%d GPUs, %+v", gpus, l)
		}
	}
}
