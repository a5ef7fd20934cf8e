package money_test

import (
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/money"
)

func TestMoneyAsText(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		m                money.MicroUSD
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
		m := money.MicroUSD(rapid.Int64().Draw(t, "m"))
		back, ok := new(big.Rat).SetString(m.Decimal())
		require.True(t, ok)
		require.Zero(t, back.Cmp(big.NewRat(int64(m), int64(money.USD))))
	})
}

func TestCostOfATime(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		price money.MicroUSD
		d     time.Duration
		want  money.MicroUSD
	}{
		{3 * money.USD, time.Hour, 3 * money.USD},
		{3 * money.USD, 20 * time.Minute, money.USD},
		{3 * money.USD, 0, 0},
		{1, 29*time.Minute + 59*time.Second, 0},
		{1, 30 * time.Minute, 1},
		{-1, 30 * time.Minute, -1},
		{300_000 * money.USD, 14 * 24 * time.Hour, 100_800_000 * money.USD}, // 100,000 GPUs for a fortnight
		{math.MaxInt64, 2 * time.Hour, math.MaxInt64},
		{math.MaxInt64, math.MaxInt64, math.MaxInt64},
		{3 * money.USD, -time.Hour, 0},
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
		require.Equal(t, want.Int64(), int64(money.MicroUSD(m).For(time.Duration(d))))
	})
}

// The largest products do not fit, and neither does the first that does not.
func TestWhatIsTooMuchIsTheMost(t *testing.T) {
	t.Parallel()
	const half = money.MicroUSD(1 << 62)
	require.Equal(t, half, half.For(time.Hour))
	for _, d := range []time.Duration{2 * time.Hour, 4 * time.Hour, 1 << 62} {
		require.Equal(t, money.MicroUSD(math.MaxInt64), half.For(d), "%s", d)
	}
}
