package capacity_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/money"
)

func TestASourceOwesItsMinimum(t *testing.T) {
	t.Parallel()
	s := capacity.Offering{Provisioner: "aws", Region: "eu-1", Type: "p5", Price: 60 * money.USD,
		MinBilling: time.Minute}
	require.Equal(t, "aws/eu-1/p5", s.Key())
	for billed, want := range map[time.Duration]money.MicroUSD{
		-1: 0, 0: money.USD, 1: money.USD, time.Minute: money.USD, 90 * time.Second: 1_500_000,
		time.Hour: 60 * money.USD,
	} {
		require.Equal(t, want, s.Cost(billed), billed)
	}
}

func TestAPoolsSources(t *testing.T) {
	t.Parallel()
	first := capacity.Offering{Provisioner: "aws", Region: "eu-1", Type: "p5", Price: 2, MinBilling: 3}
	other := capacity.Offering{Provisioner: "gcp", Region: "eu-4", Type: "a3"}
	p := capacity.Pool{
		Provisioner: "aws", Region: "eu-1", Type: "p5", Price: 2, MinBilling: 3,
		Alternates: []capacity.Alternate{{Offering: other, Boot50: 1}},
	}
	require.Equal(t, []capacity.Offering{first, other}, p.Offerings())
}

func TestTheLargestCostIsReachedExactly(t *testing.T) {
	t.Parallel()
	require.Equal(t, money.MicroUSD(math.MaxInt64), money.MicroUSD(math.MaxInt64).For(time.Hour))
	require.Equal(
		t,
		money.MicroUSD(-math.MaxInt64),
		money.MicroUSD(math.MinInt64).For(2*time.Hour),
		"the first product that no 64 bits can divide",
	)
}
