package capacity_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/capacity"
)

func TestLayouts(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		gpus int
		l    capacity.Layout
		want string
	}{
		{5, capacity.Layout{}, "1×4+1"},
		{5, capacity.Layout{Even: true}, "5×1"},
		{6, capacity.Layout{Even: true}, "2×3"},
		{5, capacity.Layout{Nodes: 2}, "1×3+2"},
		{4, capacity.Layout{Nodes: 4}, "4×1"},
		{5, capacity.Layout{Nodes: 4}, ""}, // 2, 1, 1 and 1: more than one has fewer
		{5, capacity.Layout{PerNode: 2}, "2×2+1"},
		{1, capacity.Layout{PerNode: 2}, "1×1"},
		{0, capacity.Layout{Nodes: 2, PerNode: 3}, "2×3"},
		{5, capacity.Layout{Nodes: 2, PerNode: 4}, "1×4+1"},
		{5, capacity.Layout{Nodes: 2, PerNode: 4, Even: true}, ""},
		{9, capacity.Layout{Nodes: 2, PerNode: 4}, ""},
		{4, capacity.Layout{Nodes: 2, PerNode: 4}, ""}, // nothing is left for the last
		{8, capacity.Layout{Nodes: 1, PerNode: 8}, "1×8"},
		{0, capacity.Layout{}, ""},
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
	for shape, want := range map[capacity.Shape]struct {
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
	for _, l := range []capacity.Layout{{Nodes: -1}, {PerNode: -1}, {Nodes: -2, PerNode: -2}} {
		for _, gpus := range []int{0, 1, 4} {
			_, ok := l.Shape(gpus, 4)
			require.False(t, ok, "%d GPUs, %+v", gpus, l)
		}
	}
}

func TestShapesOfNoLayout(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		n, perNode int
		want       string
		ok         bool
	}{
		{1, 8, "1×1", true}, {8, 8, "1×8", true}, {9, 8, "1×8+1", true}, {12, 8, "2×6", true}, {16, 8, "2×8", true},
		{7, 4, "1×4+3", true}, {5, 4, "1×4+1", true}, {11, 8, "1×8+3", true}, {6, 4, "2×3", true},
		{10, 4, "2×4+2", true}, {5, 1, "5×1", true}, {0, 8, "0×0", false}, {-1, 8, "0×0", false},
		{4, 0, "0×0", false},
		{99_991, 8, "12498×8+7", true}, // a prime: no equal parts but ones
	} {
		shape, ok := capacity.Layout{}.Shape(tc.n, tc.perNode)
		require.Equal(t, tc.ok, ok)
		require.Equal(t, tc.want, shape.String())
	}
}

func TestShapeForUsesTheFewestNodes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n, perNode := rapid.IntRange(1, 5000).Draw(t, "n"), rapid.IntRange(1, 16).Draw(t, "per node")
		shape, ok := capacity.Layout{}.Shape(n, perNode)
		require.True(t, ok)
		require.Equal(t, n, shape.GPUs())
		require.True(t, shape.Valid())
		require.LessOrEqual(t, shape.PerNode, perNode)
		require.Less(t, (shape.Nodes-1)*perNode, n, "fewer nodes would do")
		require.True(t, shape.Short == 0 || n%shape.Nodes > 0, "equal parts would do")
		sum := 0
		for i := range shape.Nodes {
			require.Positive(t, shape.On(i))
			sum += shape.On(i)
		}
		require.Equal(t, n, sum)
	})
}
