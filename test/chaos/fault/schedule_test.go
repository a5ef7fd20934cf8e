package fault_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/test/chaos/fault"
)

func TestASeedDecides(t *testing.T) {
	t.Parallel()
	plan := fault.Schedule(7, 10*time.Minute)
	require.Equal(t, plan, fault.Schedule(7, 10*time.Minute))
	require.NotEqual(t, plan, fault.Schedule(8, 10*time.Minute))
}

// The run of two minutes in continuous integration has every kind of fault, and
// is over in time.
func TestTwoMinutesHaveEveryKind(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		struck := map[fault.Kind]int{}
		for _, p := range fault.Schedule(seed+1, 2*time.Minute) {
			struck[p.Kind]++
			require.LessOrEqual(t, p.At+p.For, 2*time.Minute)
			require.GreaterOrEqual(t, p.For, time.Duration(0))
		}
		require.Len(t, struck, len(fault.Kinds()), "seed %d", seed+1)
	}
}
