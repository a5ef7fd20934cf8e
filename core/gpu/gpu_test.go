package gpu_test

import (
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/gpu"
)

func TestMoneyAsText(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		m                gpu.MicroUSD
		cents, sixPlaces string
	}{
		{0, "$0.00", "0.000000"},
		{1, "$0.00", "0.000001"},
		{4_999, "$0.00", "0.004999"},
		{5_000, "$0.01", "0.005000"},
		{-5_000, "-$0.01", "-0.005000"},
		{12_340_000, "$12.34", "12.340000"},
		{-1_999_999, "-$2.00", "-1.999999"},
		{math.MaxInt64, "$9223372036854.78", "9223372036854.775807"},
		{math.MinInt64, "-$9223372036854.78", "-9223372036854.775808"},
	} {
		require.Equal(t, tc.cents, tc.m.String())
		require.Equal(t, tc.sixPlaces, tc.m.Decimal())
	}
}

func TestDecimalIsExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := gpu.MicroUSD(rapid.Int64().Draw(t, "m"))
		back, ok := new(big.Rat).SetString(m.Decimal())
		require.True(t, ok)
		require.Zero(t, back.Cmp(big.NewRat(int64(m), int64(gpu.USD))))
	})
}

func TestCostOfATime(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		price gpu.MicroUSD
		d     time.Duration
		want  gpu.MicroUSD
	}{
		{3 * gpu.USD, time.Hour, 3 * gpu.USD},
		{3 * gpu.USD, 20 * time.Minute, gpu.USD},
		{3 * gpu.USD, 0, 0},
		{1, 29*time.Minute + 59*time.Second, 0},
		{1, 30 * time.Minute, 1},
		{-1, 30 * time.Minute, -1},
		{300_000 * gpu.USD, 14 * 24 * time.Hour, 100_800_000 * gpu.USD}, // 100,000 GPUs for a fortnight
		{math.MaxInt64, 2 * time.Hour, math.MaxInt64},
		{math.MaxInt64, math.MaxInt64, math.MaxInt64},
		{3 * gpu.USD, -time.Hour, 0},
	} {
		require.Equal(t, tc.want, tc.price.For(tc.d), "%d for %s", tc.price, tc.d)
	}
}

func TestCostIsTheNearestMicroDollar(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.Int64Range(-1<<50, 1<<50).Draw(t, "price")
		d := rapid.Int64Range(0, int64(5000*time.Hour)).Draw(t, "duration")
		want := new(big.Int).Mul(big.NewInt(2*max(m, -m)), big.NewInt(d))
		want.Add(want, big.NewInt(int64(time.Hour))).Div(want, big.NewInt(2*int64(time.Hour)))
		if m < 0 {
			want.Neg(want)
		}
		require.Equal(t, want.Int64(), int64(gpu.MicroUSD(m).For(time.Duration(d))))
	})
}

func TestShapeFor(t *testing.T) {
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
		shape, ok := gpu.ShapeFor(tc.n, tc.perNode)
		require.Equal(t, tc.ok, ok)
		require.Equal(t, tc.want, shape.String())
	}
}

func TestShapeForUsesTheFewestNodes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n, perNode := rapid.IntRange(1, 5000).Draw(t, "n"), rapid.IntRange(1, 16).Draw(t, "per node")
		shape, ok := gpu.ShapeFor(n, perNode)
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
