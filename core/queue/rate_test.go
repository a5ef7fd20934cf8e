package queue_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/queue"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

func TestABurstThenTheExactRate(t *testing.T) {
	t.Parallel()
	r := queue.Rate{Every: 7 * time.Second / 3, Burst: 3}
	var e queue.Entries
	var wait queue.Wait
	var opens time.Time
	for range 3 {
		e, wait, _ = r.Enter(e, noon)
		require.Equal(t, queue.WaitNone, wait)
	}
	after, wait, opens := r.Enter(e, noon)
	require.Equal(t, queue.WaitRate, wait)
	require.Equal(t, noon.Add(r.Every), opens)
	require.Equal(t, e, after, "a refusal takes nothing")
	_, wait, _ = r.Enter(e, opens.Add(-1))
	require.Equal(t, queue.WaitRate, wait, "a nanosecond too early")
	_, wait, _ = r.Enter(e, opens)
	require.Equal(t, queue.WaitNone, wait)
	_, wait, _ = r.Enter(e, noon.Add(-time.Hour))
	require.Equal(t, queue.WaitRate, wait, "a clock that goes back gives no tokens")
}

func TestTheDailyLimitBeginsAnewAtMidnightOfUTC(t *testing.T) {
	t.Parallel()
	r := queue.Rate{Daily: 2}
	evening := time.Date(2026, 3, 2, 23, 59, 59, 0, time.FixedZone("east", 3600))
	var e queue.Entries
	var wait queue.Wait
	for range 2 {
		e, wait, _ = r.Enter(e, evening)
		require.Equal(t, queue.WaitNone, wait)
	}
	e, wait, opens := r.Enter(e, evening)
	require.Equal(t, queue.WaitDaily, wait)
	require.Equal(t, time.Date(2026, 3, 3, 0, 0, 0, 0, time.UTC), opens)
	_, wait, _ = r.Enter(e, opens.Add(-1))
	require.Equal(t, queue.WaitDaily, wait)
	e, wait, _ = r.Enter(e, opens)
	require.Equal(t, queue.WaitNone, wait)
	e, _, _ = r.Enter(e, opens)
	_, wait, _ = r.Enter(e, evening)
	require.Equal(t, queue.WaitDaily, wait, "a clock that goes back gives no new day")
	_, wait, _ = queue.Rate{Daily: 1}.Enter(queue.Entries{Day: -2, Count: 1}, time.Unix(-1, 0))
	require.Equal(t, queue.WaitNone, wait, "the last second of 1969 is a day of its own")
}

// Over any time, no more enter than the burst and one for each interval, and whoever
// keeps asking gets all of them.
func TestTheRateIsExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := queue.Rate{Every: time.Duration(rapid.IntRange(1, 1000).Draw(t, "every")),
			Burst: rapid.IntRange(0, 5).Draw(t, "burst")}
		var e queue.Entries
		var entered int
		now := noon
		for range rapid.IntRange(1, 300).Draw(t, "tries") {
			var wait queue.Wait
			var opens time.Time
			if e, wait, opens = r.Enter(e, now); wait == queue.WaitNone {
				entered++
			} else if rapid.Bool().Draw(t, "wait just long enough") {
				now = opens
				continue
			}
			now = now.Add(time.Duration(rapid.IntRange(0, 50).Draw(t, "step")))
			most := max(r.Burst, 1) + int(now.Sub(noon)/r.Every)
			require.LessOrEqual(t, entered, most)
		}
	})
}
