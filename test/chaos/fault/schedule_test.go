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

// A daemon freezes for five minutes, once in each quarter of an hour.
func TestLongRunsHaveADaemonFreeze(t *testing.T) {
	t.Parallel()
	for minutes, want := range map[time.Duration]int{10: 0, 15: 1, 29: 1, 60: 4} {
		froze, last := 0, time.Duration(0)
		for _, p := range fault.Schedule(uint64(minutes), minutes*time.Minute) {
			require.GreaterOrEqual(t, p.At, last, "they come in turn")
			if last = p.At; p.Kind == "freeze-daemon" {
				froze++
				require.Equal(t, 5*time.Minute, p.For)
				require.LessOrEqual(t, p.At+p.For, minutes*time.Minute)
			}
		}
		require.Equal(t, want, froze, minutes)
	}
}
