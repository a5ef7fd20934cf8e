package node_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/node"
)

func TestHeatFollowsWhatIsMeasured(t *testing.T) {
	t.Parallel()
	rules := node.HeatRules{WarmFrom: 75, HotFrom: 85, CoolDown: 4 * time.Minute}
	begin := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	at := func(minutes int) time.Time { return begin.Add(time.Duration(minutes) * time.Minute) }
	var h node.Heat
	for _, step := range []struct {
		minute, celsius int
		changes         bool
		warm            bool
		hotUntil        int // minutes; 0: it never was
	}{
		{0, 60, false, false, 0},
		{1, 0, false, false, 0}, // not known
		{2, 75, true, true, 0},
		{3, 80, false, true, 0},
		{4, 74, false, true, 0}, // it wavers
		{5, 72, true, false, 0},
		{6, 85, true, true, 10},
		{7, 90, false, true, 10},
		{8, 90, false, true, 10},
		{9, 90, true, true, 13}, // still hot: put off
		{10, 84, true, true, 14},
		{11, 84, false, true, 14},
		{12, 60, true, false, 14}, // cool, and has to stay so
		{20, 90, true, true, 24},
		{50, 50, true, false, 24}, // nothing was heard for long: it has cooled down meanwhile
	} {
		next, changed := h.After(step.celsius, rules, at(step.minute))
		require.Equal(t, step.changes, changed, "minute %d", step.minute)
		if h = next; step.hotUntil == 0 {
			require.Zero(t, h.HotUntil)
		} else {
			require.Equal(t, at(step.hotUntil), h.HotUntil, "minute %d", step.minute)
		}
		require.Equal(t, step.warm, h.IsWarm(rules), "minute %d", step.minute)
		require.Equal(t, at(step.minute).Before(h.HotUntil), h.IsHot(at(step.minute)))
	}
}
