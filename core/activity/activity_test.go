package activity_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/activity"
	"github.com/forewarm/forewarm/core/calendar"
)

var nine = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

// series is what is kept of looks.
type series struct {
	open  []activity.Open
	ended []activity.Stretch
	seen  time.Time
}

func (s *series) look(at time.Time, looks ...activity.Look) {
	open, ended := activity.Record(s.open, s.seen, looks, at)
	s.open, s.ended, s.seen = open, append(s.ended, ended...), at
}

// all are the stretches of a GPU as they are known.
func (s *series) all(gpu string) []activity.Stretch {
	stretches := append(slices.Clone(s.ended), activity.Until(s.open, s.seen)...)
	return slices.DeleteFunc(stretches, func(x activity.Stretch) bool { return x.GPU != gpu })
}

func minutes(n int) time.Time { return nine.Add(time.Duration(n) * time.Minute) }

func interval(from, until int) calendar.Interval {
	return calendar.Interval{Start: minutes(from), End: minutes(until)}
}

// A line has one sign a minute: # the GPU did something, . it did nothing, ? it does not
// tell, and a space: nobody looked.
func draw(line string) *series {
	s := &series{}
	for i, sign := range line {
		switch sign {
		case '#', '.':
			s.look(minutes(i), activity.Look{GPU: "a", Used: sign == '#'})
		case '?':
			s.look(minutes(i))
		}
	}
	return s
}

func TestStretches(t *testing.T) {
	t.Parallel()
	stretch := func(from, until int, idle bool) activity.Stretch {
		return activity.Stretch{GPU: "a", Interval: interval(from, until), Idle: idle}
	}
	for name, c := range map[string]struct {
		line string
		want []activity.Stretch
	}{
		"idle from the first look on":       {".......", []activity.Stretch{stretch(0, 6, true)}},
		"in use":                            {"#####", []activity.Stretch{stretch(0, 4, false)}},
		"idleness begins with the last use": {"##......", []activity.Stretch{stretch(0, 1, false), stretch(1, 7, true)}},
		"a pause is a part of the use":      {"##....##", []activity.Stretch{stretch(0, 7, false)}},
		"use ends idleness":                 {".......##", []activity.Stretch{stretch(0, 6, true), stretch(6, 8, false)}},
		"one look is no time":               {"#", nil},
		"nobody looked in between": {"......   ......",
			[]activity.Stretch{stretch(0, 5, true), stretch(9, 14, true)}},
		"it does not tell for a while": {"......?......",
			[]activity.Stretch{stretch(0, 5, true), stretch(7, 12, true)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, draw(c.line).all("a"))
		})
	}
}

func TestIdleSinceTheLastOfSomeGPUs(t *testing.T) {
	t.Parallel()
	s := &series{}
	for i := range 20 {
		s.look(minutes(i), activity.Look{GPU: "a"}, activity.Look{GPU: "b", Used: i < 4}, activity.Look{GPU: "c", Used: true})
	}
	since, idle := activity.IdleSince(s.open, []string{"a", "b"})
	require.True(t, idle)
	require.Equal(t, minutes(3), since)
	for _, gpus := range [][]string{{"a", "c"}, {"a", "unknown"}, nil} {
		_, idle = activity.IdleSince(s.open, gpus)
		require.False(t, idle, "%v", gpus)
	}
}

func TestAClockThatGoesBackMakesNoIdleness(t *testing.T) {
	t.Parallel()
	s := draw(".......")
	s.look(minutes(2), activity.Look{GPU: "a"})
	_, idle := activity.IdleSince(s.open, []string{"a"})
	require.False(t, idle)
	require.Equal(t, []activity.Stretch{{GPU: "a", Interval: interval(0, 6), Idle: true}}, s.ended)
	require.Equal(t, minutes(6), s.open[0].Since, "stretches do not overlap")
}

func TestAGPUThatIsNamedTwiceCountsOnce(t *testing.T) {
	t.Parallel()
	s := &series{}
	for i := range 8 {
		s.look(minutes(i), activity.Look{GPU: "a"}, activity.Look{GPU: "a", Used: true})
	}
	require.Equal(t, []activity.Stretch{{GPU: "a", Interval: interval(0, 7), Idle: true}}, s.all("a"))
}

func TestSplitOfATimeThatWasHeld(t *testing.T) {
	t.Parallel()
	stretches := draw("###.......##   ###").all("a")
	used, idle := activity.Split(stretches, interval(1, 20))
	require.Equal(t, []time.Duration{5 * time.Minute, 7 * time.Minute}, []time.Duration{used, idle})
	used, idle = activity.Split(stretches, interval(12, 14))
	require.Zero(t, used+idle)
}

// Whatever is seen: stretches lie in their order, inside the time that was looked at, no idle
// one is shorter than the grain unless the looks ended, and none covers a look that saw use.
func TestIdleIsOnlyWhatWasSeen(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, now := &series{}, nine
		var uses []calendar.Interval // from the look before each use to it
		var looked time.Duration
		for range rapid.IntRange(1, 80).Draw(t, "looks") {
			step := time.Duration(rapid.IntRange(1, 100).Draw(t, "step")) * time.Second
			now = now.Add(step)
			used := rapid.IntRange(0, 9).Draw(t, "used") == 0
			if !s.seen.IsZero() && step <= activity.MaxGap {
				looked += step
				if used {
					uses = append(uses, calendar.Interval{Start: s.seen, End: now})
				}
			}
			s.look(now, activity.Look{GPU: "a", Used: used})
		}
		var sum time.Duration
		var last time.Time
		for _, x := range s.all("a") {
			require.False(t, x.Start.Before(last), "they overlap")
			require.True(t, x.Start.Before(x.End))
			last, sum = x.End, sum+x.Length()
			for _, use := range uses {
				require.False(t, x.Idle && use.Overlaps(x.Interval), "used at %v", use)
			}
			require.False(t, x.Idle && x.Length() < activity.Grain, "%v", x)
		}
		require.Equal(t, looked, sum, "all that was looked at, and nothing else")
	})
}

// What is kept grows with what happens, not with how often it is looked at.
func TestLooksThatSayNothingNewKeepNothing(t *testing.T) {
	t.Parallel()
	s := &series{}
	for i := range 10_000 {
		s.look(nine.Add(time.Duration(i)*30*time.Second), activity.Look{GPU: "a", Used: i%9 == 0})
	}
	require.Empty(t, s.ended)
	require.Len(t, s.open, 1)
}

func TestUsedUntilIsTheEndLessTheLastIdleness(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		line             string
		held, until, end int
	}{
		"nobody looked":                      {"", 0, 20, 20},
		"used to the end":                    {"#####################", 0, 20, 20},
		"idle at the end":                    {"######...............", 0, 5, 20},
		"idle before":                        {"......###############", 0, 20, 20},
		"never used":                         {".....................", 0, 0, 20},
		"nobody looked at the end":           {"######......         ", 0, 20, 20},
		"used and then idle after a gap":     {"######     ..........", 0, 11, 20},
		"idle since the holder before it":    {"###..................", 8, 8, 20},
		"the next holder's use is not its":   {"######.........######", 0, 5, 14},
		"the next holder's idleness neither": {"###############......", 0, 14, 14},
		"a moment that nobody saw":           {"", 3, 4, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := activity.UsedUntil(draw(c.line).all("a"), interval(c.held, c.end))
			require.Equal(t, minutes(c.until), got)
		})
	}
}
