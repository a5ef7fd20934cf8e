package forecast

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

const origin = 1_700_000_000

// runClass returns a tenant class that has seen a job of one GPU come and go every
// few minutes for some hours.
func runClass(t testing.TB, f *OnlineModel, hours int) (*Tenant, int64) {
	x, err := f.Tenant("a")
	require.NoError(t, err)
	now := int64(origin)
	for range hours * 12 {
		require.NoError(t, x.Submit(now, 1))
		x.Observe(now)
		require.NoError(t, x.End(now+120, 1, now, now))
		x.Observe(now + 120)
		now += 300
	}
	return x, now
}

func TestABusyTenantIsExpectedAndASilentOneIsNot(t *testing.T) {
	t.Parallel()
	x, now := runClass(t, NewOnlineModel(BuiltIn()), 24)
	busy := x.Observe(now)
	require.Greater(t, busy.Chance(1, 600), 0.25)
	require.Less(t, busy.Chance(8, 600), 0.05)
	silent := x.Observe(now + 5*86400)
	require.Less(t, silent.Chance(1, 600), busy.Chance(1, 600)/2)
}

// What is alike is learned without any prior, too.
func TestARhythmIsLearnedFromNothing(t *testing.T) {
	t.Parallel()
	x, now := runClass(t, NewOnlineModel(Prior{}), 24*7)
	require.Greater(t, x.Observe(now).Chance(1, 600), 0.45)
	require.Less(t, x.Observe(now+3*86400).Chance(1, 600), 0.2)
}

func TestNothingIsExpectedOfANewTenant(t *testing.T) {
	t.Parallel()
	x, err := NewOnlineModel(BuiltIn()).Tenant("new")
	require.NoError(t, err)
	require.EqualValues(t, math.MaxInt64, x.Next(origin))
	held := x.Observe(origin).Hold(Prices{WaitWorth: 32, Boot: 300}, 0)
	require.Zero(t, held.Levels)
	require.Contains(t, held.Explain(), "hold none")
}

// Chances are probabilities: more GPUs are never likelier, more time never less.
func TestChancesAreConsistent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		x := runRandomJobs(t, NewOnlineModel(BuiltIn()), 60)
		o := x.Observe(x.past.Last + rapid.Int64Range(0, 4000).Draw(t, "later"))
		for level := 1; level <= topLevel+1; level += 1 + level/16 {
			for s := 30.0; s < 3000; s *= 1.7 {
				p := o.Chance(level, s)
				require.True(t, p >= 0 && p <= 1)
				require.LessOrEqual(t, p, o.Chance(level-1, s))
				require.LessOrEqual(t, p, o.Chance(level, s*1.7)+1e-9)
			}
		}
		f := o.Within(600)
		require.InDelta(t, o.Chance(1, 600), f.Any(), 1e-6)
	})
}

// runRandomJobs lets random jobs come and go.
func runRandomJobs(t *rapid.T, f *OnlineModel, events int) *Tenant {
	x, err := f.Tenant("walk")
	require.NoError(t, err)
	now := int64(origin)
	type running struct {
		at   int64
		gpus int
		as   Traits
	}
	demand := 0
	var jobs []running
	for range rapid.IntRange(1, events).Draw(t, "events") {
		now += rapid.Int64Range(0, 2000).Draw(t, "gap")
		if len(jobs) > 0 && rapid.Bool().Draw(t, "end") {
			j := jobs[0]
			j.as.Failed = rapid.Bool().Draw(t, "failed")
			require.NoError(t, x.EndAs(now, j.gpus, j.at, j.at, j.as))
			jobs, demand = jobs[1:], demand-j.gpus
		} else {
			j := running{now, rapid.SampledFrom([]int{1, 1, 1, 2, 4, 8, 64, 2000}).Draw(t, "gpus"),
				Traits{Class: rapid.Uint32Range(0, 2).Draw(t, "class"), Array: rapid.Uint32Range(0, 2).Draw(t, "array")}}
			require.NoError(t, x.SubmitAs(now, j.gpus, j.as))
			jobs, demand = append(jobs, j), demand+j.gpus
		}
		o := x.Observe(now)
		require.Equal(t, demand, o.Demand)
		require.Equal(t, demand, x.Demand())
		require.LessOrEqual(t, len(x.next.Units), len(jobs))
		require.True(t, x.next.isSound(now))
	}
	return x
}

// Who pays more for waiting, or expects more, never holds less; and dearer idling
// never holds more.
func TestHoldIsMonotone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		o := randomOutlook(t)
		held := rapid.IntRange(0, 200).Draw(t, "held")
		p := Prices{WaitWorth: rapid.Float64Range(0, 500).Draw(t, "worth"),
			Boot: rapid.SampledFrom([]float64{30, 120, 300, 600}).Draw(t, "boot")}
		p.Minimum = rapid.SampledFrom([]float64{0, 60, 3600}).Draw(t, "minimum")
		dearer := p
		dearer.WaitWorth *= rapid.Float64Range(1, 10).Draw(t, "more")
		h := o.Hold(p, held)
		require.GreaterOrEqual(t, o.Hold(dearer, held).Levels, h.Levels)
		require.LessOrEqual(t, h.Levels, max(held, topLevel))
		require.NotEmpty(t, h.Explain())

		likelier := o
		for b := range o.bins {
			for k := range knots {
				likelier.chances[b][k] += (1 - likelier.chances[b][k]) * 0.3
			}
		}
		require.GreaterOrEqual(t, likelier.Hold(p, held).Levels, h.Levels)
	})
}

// What is held is worth its cost, in the numbers that are printed; all of it is if nothing is booted.
func TestWhatIsHeldIsWorthIt(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		o := randomOutlook(t)
		p := Prices{WaitWorth: rapid.Float64Range(0, 500).Draw(t, "worth"), Boot: 300}
		held, most := rapid.IntRange(0, topLevel).Draw(t, "held"), rapid.IntRange(1, topLevel).Draw(t, "most")
		h := o.HoldAtMost(p, held, most)
		require.LessOrEqual(t, h.Levels, most)
		if h.Levels > 0 {
			require.GreaterOrEqual(t, h.Saving, h.Holding, h.Explain())
		}
	})
}

// Two GPUs of a gang of eight save nobody's wait: they go if the other six are not worth a boot or may not be held, and
// wait for them if they are.
func TestAPartOfAGangIsHeldOnlyForTheRest(t *testing.T) {
	t.Parallel()
	o := Outlook{bins: 6}
	for b := range o.bins { // with one chance in four, eight GPUs at once after five to ten minutes
		for k := 3; k < knots; k++ {
			o.chances[b][k] = 0.25
		}
	}
	o.chances[5][landing] = 0.5 // one job in a bin of two GPUs
	p := Prices{WaitWorth: 160, Boot: 300}
	require.Equal(t, 8, o.Hold(p, 8).Levels, "all are held already")
	require.Zero(t, o.Hold(p, 2).Levels, "the rest is not worth a boot")
	require.Zero(t, o.HoldAtMost(p, 8, 4).Levels, "the rest may not be held")
	p.WaitWorth = 2000
	require.Equal(t, 8, o.Hold(p, 2).Levels)
}

func randomOutlook(t *rapid.T) Outlook {
	o := Outlook{bins: rapid.IntRange(0, bins).Draw(t, "bins")}
	top := 1.0
	for b := range o.bins {
		top *= rapid.Float64Range(0.3, 1).Draw(t, "share")
		for k := range knots {
			o.chances[b][k] = float32(top * float64(k+1) / (knots + 2))
		}
		o.chances[b][landing] = rapid.Float32Range(0, 1).Draw(t, "landing")
	}
	o.enforceOrder()
	return o
}

// A gang is held whole or not at all: a part of it saves nobody's wait.
func TestAGangIsHeldWhole(t *testing.T) {
	t.Parallel()
	o := Outlook{bins: 6}
	for b := range o.bins { // with one chance in two, eight GPUs at once after five to ten minutes
		for k := 3; k < knots; k++ {
			o.chances[b][k] = 0.5
		}
	}
	o.chances[5][landing] = 0.5 // one job in a bin of two GPUs
	p := Prices{Boot: 300}
	for _, worth := range []float64{1, 5, 10, 20, 40, 80, 160, 320} {
		p.WaitWorth = worth
		require.Contains(t, []int{0, 8}, o.Hold(p, 0).Levels, "worth %v", worth)
	}
	require.Equal(t, 8, o.Hold(p, 0).Levels)
}

func TestWhatIsPaidForIsKept(t *testing.T) {
	t.Parallel()
	o := Outlook{bins: 1}
	for k := range knots {
		o.chances[0][k] = 0.01
	}
	p := Prices{WaitWorth: 1, Boot: 300}
	require.Zero(t, o.Hold(p, 1).Levels)
	p.Prepaid = 3600
	require.Equal(t, 1, o.Hold(p, 1).Levels)
}

func TestStateGivesTheSameNumbers(t *testing.T) {
	t.Parallel()
	f := NewOnlineModel(BuiltIn())
	x, now := runClass(t, f, 24)
	data, err := json.Marshal(f)
	require.NoError(t, err)
	var back OnlineModel
	require.NoError(t, json.Unmarshal(data, &back))
	y, err := back.Tenant("a")
	require.NoError(t, err)
	require.Equal(t, x.past, y.past)
	require.InDelta(t, x.Observe(now+9).Chance(1, 600), y.Observe(now+9).Chance(1, 600), 0.01,
		"but for the looks that waited")

	stored, err := json.Marshal(x.past)
	require.NoError(t, err)
	t.Logf("a tenant class takes %d bytes as JSON", len(stored))
	for _, bad := range []string{`{}`, `[]`, `{"version":2}`, `{"version":1,"network":"AAAA"}`,
		`{"version":1,"unknown":1}`} {
		require.Error(t, json.Unmarshal([]byte(bad), &back), bad)
	}
	require.Equal(t, y.past, back.tenants["a"].past, "a state that cannot be changes nothing")
}

func TestWhatCannotBeIsRefused(t *testing.T) {
	t.Parallel()
	x, err := NewOnlineModel(BuiltIn()).Tenant("a")
	require.NoError(t, err)
	require.NoError(t, x.Submit(origin, 1))
	before := x.past
	require.ErrorIs(t, x.Submit(origin-1, 1), ErrOrder)
	require.ErrorIs(t, x.Submit(origin, 0), ErrGPUs)
	require.ErrorIs(t, x.Submit(origin, MaxJob+1), ErrGPUs)
	require.ErrorIs(t, x.Submit(latest, 1), ErrTime)
	require.ErrorIs(t, x.End(-1, 1, 0, 0), ErrTime)
	require.Equal(t, before, x.past)
	_, err = ParsePrior([]byte(priorHead))
	require.ErrorIs(t, err, ErrPrior)
	p, err := ParsePrior(BuiltIn().Bytes())
	require.NoError(t, err)
	require.Equal(t, BuiltIn(), p)
}

// Nothing that happens later changes what was said.
func TestLooksAreCausal(t *testing.T) {
	t.Parallel()
	say := func(more bool) Outlook {
		x, now := runClass(t, NewOnlineModel(BuiltIn()), 5)
		o := x.Observe(now)
		if more {
			require.NoError(t, x.Submit(now+1, 64))
			x.Observe(now + 5000)
		}
		return o
	}
	require.Equal(t, say(false), say(true))
}

// Next names only seconds to come, ever further apart, and then no more.
func TestLooksGrowRare(t *testing.T) {
	t.Parallel()
	x, _ := runClass(t, NewOnlineModel(BuiltIn()), 1)
	now, last, n := x.past.Last, int64(0), 0
	for next := x.Next(now); next != math.MaxInt64; next = x.Next(now) {
		require.Greater(t, next, now)
		last, now = next-now, next
		x.Observe(now)
		n++
	}
	require.EqualValues(t, lookEvery, last)
	require.Less(t, n, 1100)
}

// Half of a gang is worth nothing: a bin whose jobs' needs end at one of its levels is held up to its end, and one
// whose needs end everywhere up to where the chance ceases to be worth it.
func TestAThresholdHoldsGangsAsAWhole(t *testing.T) {
	t.Parallel()
	b := binOf(17)
	o := Outlook{bins: b + 2}
	for i := range o.bins {
		o.hazard[i] = -2
	}
	o.hazard[b+1] = -4
	chance := 1 / (1 + math.Exp(3)) // halfway between the two bins
	o.chances[b][landing] = 1
	require.Equal(t, 17+binWidth[b]/2, o.hazardLevels(chance))
	o.chances[b][landing] = 1 / float32(binWidth[b])
	require.Equal(t, 24, o.hazardLevels(chance))
	o.bins = b + 1
	require.Equal(t, 24, o.hazardLevels(chance), "of the last bin that was looked at, all")
	require.Zero(t, o.hazardLevels(0.9))
	require.Zero(t, o.hazardLevels(1))
}

func TestStepsRememberWhenALevelWasLeft(t *testing.T) {
	t.Parallel()
	var s lastUsedByLevel
	s = s.leaveLevels(10, 100)
	s = s.leaveLevels(4, 200)
	require.EqualValues(t, 200, s.lastUse(4))
	require.EqualValues(t, 100, s.lastUse(5))
	require.EqualValues(t, 0, s.lastUse(11))
	s = s.leaveLevels(6, 300)
	require.EqualValues(t, 300, s.lastUse(1))
	require.Len(t, s, 2)
	for i := range 500 {
		s = s.leaveLevels(1000-i, int64(400+i))
	}
	require.LessOrEqual(t, len(s), maxSteps)
}

// BenchmarkLook is one arrival or end, with what is learned, and the decision
// after it.
func BenchmarkLook(b *testing.B) {
	x, now := runClass(b, NewOnlineModel(BuiltIn()), 48)
	b.ReportAllocs()
	for b.Loop() {
		now += 60
		_ = x.Submit(now, 1)
		x.Observe(now).Hold(Prices{WaitWorth: 32, Boot: 300}, 1)
		_ = x.End(now+20, 1, now, now)
		x.Observe(now+20).Hold(Prices{WaitWorth: 32, Boot: 300}, 1)
		now += 20
	}
}

func TestQuantilesOfStartAndDuration(t *testing.T) {
	t.Parallel()
	x, now := runClass(t, NewOnlineModel(BuiltIn()), 24)
	require.Zero(t, (&past{}).durationQuantile(0.5))
	low, high := x.Lasts(0.1), x.Lasts(0.9)
	require.True(t, 64 <= low && low < high && high <= 128, "jobs of 120 s: %v to %v", low, high)

	o := x.Observe(now)
	likely := o.Chance(1, longestKnot)
	early, ok := o.Start(1, likely/3)
	require.True(t, ok)
	late, ok := o.Start(1, likely*2/3)
	require.True(t, ok)
	require.Less(t, early, late)
	require.InDelta(t, likely/3, o.Chance(1, early), 1e-6)
	_, ok = o.Start(topLevel, 0.9)
	require.False(t, ok)
}
