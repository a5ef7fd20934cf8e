package forecast

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// come lets a job of some GPUs come at a second.
func (t *timetable) come(at int64, gpus int) {
	t.passTo(at)
	t.add(at, gpus)
}

func TestTwoJobsAnHourApartMakeAHabit(t *testing.T) {
	t.Parallel()
	var hs timetable
	hs.come(origin, 2)
	require.Zero(t, hs.wanted(origin+3600-60, Prices{WaitWorth: 32, Boot: 300}), "it came once")
	hs.come(origin+3590, 2)
	due := int64(origin + 3590 + 3600)
	require.Zero(t, hs.wanted(due-331, Prices{WaitWorth: 32, Boot: 300}), "its boot can begin later")
	require.Equal(t, 2, hs.wanted(due-330, Prices{WaitWorth: 32, Boot: 300}))
	require.Equal(t, 2, hs.wanted(due+90, Prices{WaitWorth: 32, Boot: 300}))
	require.Zero(t, hs.wanted(due+91, Prices{WaitWorth: 32, Boot: 300}), "it has not come")
	require.Zero(t, hs.wanted(due, Prices{WaitWorth: 0.1, Boot: 300}),
		"waiting costs less than holding GPUs that may not be needed")
	require.Equal(t, due-330, hs.next(due-1000, due, 330))
	require.Equal(t, due+91, hs.next(due, due+1000, 330))
	require.Equal(t, due-500, hs.next(due-1000, due-500, 330))
}

// Half of all boots take longer than the median: what comes by the clock is held for nearly all of them to be over.
func TestWhatComesByTheClockIsHeldBeforeASlowBoot(t *testing.T) {
	t.Parallel()
	var hs timetable
	hs.come(origin, 2)
	hs.come(origin+3600, 2)
	due, p := int64(origin+2*3600), Prices{WaitWorth: 32, Boot: 300, Late: 150}
	require.Zero(t, hs.wanted(due-481, p))
	require.Equal(t, 2, hs.wanted(due-480, p))
	require.Equal(t, due-480, hs.next(due-1000, due, leadOf(450)))
}

func TestWhatDoesNotComeAnyMoreIsGivenUp(t *testing.T) {
	t.Parallel()
	var hs timetable
	for n := range int64(20) {
		hs.come(origin+900*n, 1)
	}
	require.Len(t, hs.Habits, 1)
	require.Greater(t, hs.Habits[0].Kept, float32(0.99))
	due := hs.Habits[0].due()
	hs.passTo(due + 2*900)
	require.Equal(t, 1, hs.wanted(due+2*900, Prices{WaitWorth: 32, Boot: 300}), "once is no change of habit")
	hs.passTo(due + 20*900)
	require.Empty(t, hs.Habits)
}

// Whoever comes at random every few minutes has hardly a habit, and fills no memory.
func TestChanceIsNoHabit(t *testing.T) {
	t.Parallel()
	var hs timetable
	draw, now := splitmix(3), int64(origin)
	wanted, looks := 0, 0
	for range 2000 {
		now += 60 + int64(1200*draw.nextFloat())
		hs.come(now, 1+int(3*draw.nextFloat()))
		require.LessOrEqual(t, len(hs.Habits), maxHabits)
		wanted += min(1, hs.wanted(now+30, Prices{WaitWorth: 8, Boot: 300}))
		looks++
	}
	require.Less(t, float64(wanted), 0.5*float64(looks))
}

func TestEqualJobsOfOneMinuteAreOneHabit(t *testing.T) {
	t.Parallel()
	var hs timetable
	for day := range int64(3) {
		for n := range int64(5) {
			hs.come(origin+86400*day+7*n, 4)
		}
		hs.come(origin+86400*day+20, 1)
	}
	require.Len(t, hs.Habits, 2)
	require.Equal(t, 21, hs.wanted(origin+3*86400-100, Prices{WaitWorth: 32, Boot: 300}))
}

// A job each quarter of an hour, and a gang each night: after two days both are held in time, and nothing between.
func TestWhatComesByTheClockIsHeldInTime(t *testing.T) {
	t.Parallel()
	s := newShadowed(t, NewOnlineModel(BuiltIn()), NewExperts())
	const step, days = 900, 6
	missed, late := 0, 0
	for n := range int64(days * 86400 / step) {
		at := origin + n*step
		s.lookUntil(at)
		if gpus := 1; n > days*86400/step/2 {
			if n%96 == 12 {
				gpus += 8
			}
			missed += max(0, gpus-s.target)
			late += gpus
		}
		require.NoError(t, s.class.Submit(at, 1))
		if n%96 == 12 {
			require.NoError(t, s.class.Submit(at, 8))
		}
		s.lookAt(at)
		s.lookUntil(at + 200)
		require.NoError(t, s.class.End(at+200, 1, at, at))
		if n%96 == 12 {
			require.NoError(t, s.class.End(at+200, 8, at, at))
		}
		s.lookAt(at + 200)
	}
	require.Zero(t, missed, "of %d GPUs", late)
	require.Contains(t, s.held.Explain(), "by the clock")
}

// What was stored before there was a timetable is read: its experts begin with what our own decision has cost.
func TestExpertsWithoutATimetableAreRead(t *testing.T) {
	t.Parallel()
	x := NewExperts()
	s := newShadowed(t, NewOnlineModel(BuiltIn()), x)
	s.submit(origin, 2)
	s.end(origin+3600, 2, origin)
	s.lookAt(origin + 7200)
	data, err := json.Marshal(x)
	require.NoError(t, err)
	var old map[string]any
	require.NoError(t, json.Unmarshal(data, &old))
	class := old["classes"].(map[string]any)["a"].(map[string]any)
	old["version"] = olderExperts
	old["cost"] = old["cost"].([]any)[:fewerExperts]
	class["fleets"] = class["fleets"].([]any)[:fewerExperts]
	data, err = json.Marshal(old)
	require.NoError(t, err)
	back := NewExperts()
	require.NoError(t, json.Unmarshal(data, back))
	fleets := back.Class(s.class).state.Fleets
	require.Equal(t, x.cost[own], back.cost[byClock])
	require.Equal(t, s.shadows.state.Fleets[own], fleets[ownOrTable])
	require.Equal(t, s.shadows.state.Fleets[nothing], fleets[nothing])
}
