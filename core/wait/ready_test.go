package wait_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/wait"
)

func TestWhenTheLastNodeIsLikelyReady(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	at := func(minutes int) time.Time { return now.Add(time.Duration(minutes) * time.Minute) }
	for name, of := range map[string]struct {
		asked []time.Time
		want  time.Time
	}{
		"none is waited for":       {nil, now},
		"asked for now":            {[]time.Time{at(0)}, at(4)},
		"the last decides":         {[]time.Time{at(-3), at(-1), at(-2)}, at(3)},
		"one that cannot be yet":   {[]time.Time{at(-1), at(20)}, at(24)},
		"one that is overdue":      {[]time.Time{at(-9)}, now},
		"overdue beside one to be": {[]time.Time{at(-9), at(-3)}, at(1)},
	} {
		require.Equal(t, of.want, wait.LikelyReady(now, slices.Values(of.asked), 4*time.Minute), name)
	}
}
