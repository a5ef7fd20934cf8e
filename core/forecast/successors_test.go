package forecast

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// trial is a job that is told of as it begins and as it ends.
type trial struct {
	gpus int
	as   Traits
}

func (j trial) runIn(t testing.TB, x *Tenant, from, to int64) {
	require.NoError(t, x.SubmitAs(from, j.gpus, Traits{Class: j.as.Class, Array: j.as.Array}))
	x.Observe(from)
	require.NoError(t, x.EndAs(to, j.gpus, from, from, j.as))
	x.Observe(to)
}

// retry lets jobs fail and be tried again some minutes later, every few hours, and returns the end of the last failure.
func retry(t testing.TB, x *Tenant, times int) int64 {
	now := int64(origin)
	for i := range times {
		class := uint32(1 + i%3)
		trial{4, Traits{Class: class, Failed: true}}.runIn(t, x, now, now+200)
		trial{4, Traits{Class: class}}.runIn(t, x, now+400+int64(i%3)*60, now+4000)
		now += 4 * 3600
	}
	trial{4, Traits{Class: 9, Failed: true}}.runIn(t, x, now, now+200)
	return now + 200
}

func newClass(t testing.TB) *Tenant {
	x, err := NewOnlineModel(BuiltIn()).Tenant("a")
	require.NoError(t, err)
	return x
}

func TestWhatFailedIsAwaitedUntilItIsNotLikelyToBeTriedAgain(t *testing.T) {
	t.Parallel()
	x := newClass(t)
	now := retry(t, x, 10)
	o := x.Observe(now)
	require.Zero(t, o.Demand)
	require.Greater(t, o.Chance(4, 600), 0.8)
	require.Less(t, o.Chance(5, 600), 0.3)
	require.InDelta(t, o.Chance(4, 600), o.Within(600).AtLeast(4), 1e-6)
	held := o.Hold(Prices{WaitWorth: 32, Boot: 300}, 4)
	require.Equal(t, 4, held.Levels)
	require.Greater(t, held.Chance, 0.8)
	require.Zero(t, o.Hold(Prices{WaitWorth: 0.01, Boot: 30}, 4).Levels, "a boot costs less than idling")
	require.Less(t, o.HoldAtMost(Prices{WaitWorth: 32, Boot: 300}, 4, 3).Levels, 4)

	later := x.Observe(now + 1200)
	require.Zero(t, later.awaitedGPUs())
	require.Less(t, later.Chance(4, 600), 0.3)
}

func TestATryAgainIsNoRiseOfDemand(t *testing.T) {
	t.Parallel()
	x := newClass(t)
	now := retry(t, x, 10)
	rises := len(x.arrivals)
	require.NoError(t, x.SubmitAs(now+300, 4, Traits{Class: 9}))
	require.Len(t, x.arrivals, rises)
	require.Equal(t, 4, x.Demand())
	require.NoError(t, x.SubmitAs(now+301, 4, Traits{Class: 8}))
	require.Len(t, x.arrivals, rises+1, "nothing was awaited any more")
}

func TestWhatWentWellIsNotAwaited(t *testing.T) {
	t.Parallel()
	x := newClass(t)
	for i := range int64(10) {
		trial{2, Traits{Class: 1}}.runIn(t, x, origin+i*600, origin+i*600+300)
	}
	o := x.Observe(origin + 5700)
	require.Zero(t, o.awaitedGPUs())
}

// A search runs nine jobs, then three, then one; the next round begins when the last job of one has ended.
func TestARoundIsFollowedByASmallerOne(t *testing.T) {
	t.Parallel()
	x := newClass(t)
	array, now := uint32(0), int64(origin)
	round := func(jobs int, leave int) {
		array++
		as := Traits{Class: 1, Array: array}
		for range jobs {
			require.NoError(t, x.SubmitAs(now, 1, as))
		}
		x.Observe(now)
		for i := range jobs - leave {
			require.NoError(t, x.EndAs(now+1000+int64(i), 1, now, now, as))
		}
		now += 1020
		x.Observe(now)
	}
	for range 20 {
		for _, jobs := range []int{9, 3, 1} {
			round(jobs, 0)
		}
		now += 7200
	}
	round(9, 1)
	o := x.Observe(now)
	require.Equal(t, 1, o.Demand)
	require.Equal(t, 2, o.awaitedGPUs(), "one of three is in use yet")
	require.NoError(t, x.EndAs(now, 1, now-1020, now-1020, Traits{Class: 1, Array: array}))
	require.Equal(t, 3, x.Observe(now).Hold(Prices{WaitWorth: 8, Boot: 300}, 3).Levels)
}

// What is not known of jobs changes nothing, not even by what is kept.
func TestWithoutTraitsNothingChanges(t *testing.T) {
	t.Parallel()
	x, now := runClass(t, NewOnlineModel(BuiltIn()), 24)
	o := x.Observe(now)
	require.Zero(t, o.awaitedGPUs())
	data, err := json.Marshal(x.fleet)
	require.NoError(t, err)
	require.NotContains(t, string(data), `"next"`)
}

func TestSuccessorsSurviveARestart(t *testing.T) {
	t.Parallel()
	x := newClass(t)
	now := retry(t, x, 10)
	data, err := json.Marshal(x.fleet)
	require.NoError(t, err)
	var fresh OnlineModel
	require.NoError(t, json.Unmarshal(data, &fresh))
	y, err := fresh.Tenant("a")
	require.NoError(t, err)
	require.Equal(t, x.next.Left, y.next.Left)
	require.Equal(t, x.next.After, y.next.After)
	require.Zero(t, y.Demand())
	require.InDelta(t, x.Observe(now+30).Chance(4, 600), y.Observe(now+30).Chance(4, 600), 1e-6)
}

func TestAwaitingPaysAsLongAsItSavesMoreThanItIdles(t *testing.T) {
	t.Parallel()
	var s successorStats
	require.InDelta(t, 0, s.chance(0), 1e-9)
	for range 40 {
		s.countFollowed(100)
	}
	soon := s.await(1, 1, 0)
	require.InDelta(t, 1, soon.within(128), 0.1)
	require.InDelta(t, 0.5*soon.within(128), soon.within(96), 0.01, "even between 64 and 128 s")
	require.Less(t, soon.least, 130.0)
	late := s.await(1, 1, 200)
	require.Zero(t, late.within(1000), "it is not coming any more")
	for range 60 {
		s.countAbandoned()
	}
	require.Greater(t, s.await(1, 1, 0).least, soon.least)
	require.Less(t, s.chance(0), 0.5)
}

func TestAClassWithItsShadowsStaysSmall(t *testing.T) {
	t.Parallel()
	x := newClass(t)
	require.LessOrEqual(t, x.Bytes()+maxSteps*sizeOf(stair(0))+NewExperts().Class(x).Bytes(), 3072)
	require.LessOrEqual(t, sizeOf(unit{})+sizeOf(runningJob{}), 64)
}
