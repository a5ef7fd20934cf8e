package gpu_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/gpu"
)

func TestASourceOwesItsMinimum(t *testing.T) {
	t.Parallel()
	s := gpu.Source{Provisioner: "aws", Region: "eu-1", Type: "p5", Price: 60 * gpu.USD, MinBilling: time.Minute}
	require.Equal(t, "aws/eu-1/p5", s.Key())
	for billed, want := range map[time.Duration]gpu.MicroUSD{
		-1: 0, 0: gpu.USD, 1: gpu.USD, time.Minute: gpu.USD, 90 * time.Second: 1_500_000, time.Hour: 60 * gpu.USD,
	} {
		require.Equal(t, want, s.Cost(billed), billed)
	}
}

func TestAPoolsSources(t *testing.T) {
	t.Parallel()
	first := gpu.Source{Provisioner: "aws", Region: "eu-1", Type: "p5", Price: 2, MinBilling: 3}
	other := gpu.Source{Provisioner: "gcp", Region: "eu-4", Type: "a3"}
	p := gpu.Pool{
		Provisioner: "aws", Region: "eu-1", Type: "p5", Price: 2, MinBilling: 3,
		Alternates: []gpu.Alternate{{Source: other, Boot50: 1}},
	}
	require.Equal(t, []gpu.Source{first, other}, p.Sources())
}

func TestTheLargestCostIsReachedExactly(t *testing.T) {
	t.Parallel()
	require.Equal(t, gpu.MicroUSD(math.MaxInt64), gpu.MicroUSD(math.MaxInt64).For(time.Hour))
	require.Equal(
		t,
		gpu.MicroUSD(-math.MaxInt64),
		gpu.MicroUSD(math.MinInt64).For(2*time.Hour),
		"the first product that no 64 bits can divide",
	)
}
