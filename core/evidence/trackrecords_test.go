package evidence_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/evidence"
)

// newOutcome is what comes of good(): all four jobs are spared their wait, or nobody
// comes and every size idles for 11 minutes.
func newOutcome(came bool) evidence.Outcome {
	var o evidence.Outcome
	for i := range evidence.Sizes {
		if came {
			o.Saved[i] = min(4, float64(believableRecord().Held(i)))
			continue
		}
		o.Idle[i] = float64(believableRecord().Held(i)) * 11 / 60
	}
	return o
}

// playOnce lets a source speak once and returns the decision and what it really cost
// and earned, in GPU-hours.
func playOnce(t testing.TB, b *evidence.TrackRecords, now time.Time, came bool) (evidence.Decision, float64) {
	t.Helper()
	d, err := b.Consider(now, "x", recordAt(now), userTerms())
	require.NoError(t, err)
	o, loss := newOutcome(came), 0.0
	if d.Verdict == evidence.Accepted {
		part := float64(d.GPUs) / float64(believableRecord().Held(d.Size))
		o.Spared, o.Spent = part*o.Saved[d.Size], part*o.Idle[d.Size]
		loss = o.Spent - o.Spared*32/12
	}
	require.NoError(t, b.Close(d.Until, "x", o))
	return d, loss
}

// playRepeatedly plays n times, and returns what it lost.
func playRepeatedly(t testing.TB, b *evidence.TrackRecords, now *time.Time, n int, came bool) (
	acted int, loss float64) {
	t.Helper()
	for range n {
		d, l := playOnce(t, b, *now, came)
		*now = now.Add(time.Hour)
		loss += l
		if d.Verdict == evidence.Accepted {
			acted++
		}
	}
	return acted, loss
}

// What a customer with 2000 busy GPU-hours and 5 % of overhead grants: 2 % of 100.
const budget = 100.0

func TestASabotagedSourceIsDemotedWithinTwentyCloses(t *testing.T) {
	t.Parallel()
	b, now := newTrackRecords(t, evidence.Config{Allowance: 0.02 * budget}), noon
	_, loss := playRepeatedly(t, b, &now, 100, true)
	require.Less(t, loss, -100.0, "a good source earns")
	require.True(t, b.TrackRecord("llm", "announced").Acting)
	acted, loss := playRepeatedly(t, b, &now, 20, false)
	require.Positive(t, acted)
	require.Positive(t, loss)
	require.False(t, b.TrackRecord("llm", "announced").Acting)
	more, _ := playRepeatedly(t, b, &now, 500, false)
	require.Zero(t, more, "one that is demoted is only watched")
	require.Less(t, loss, 0.02*budget, "all that the sabotage cost")
}

// With an allowance that does not bind, demotion alone stops the harm.
func TestDemotionDoesNotNeedAnEmptyBudget(t *testing.T) {
	t.Parallel()
	b, now := newTrackRecords(t, evidence.Config{Allowance: 1e5}), noon
	playRepeatedly(t, b, &now, 100, true)
	acted, _ := playRepeatedly(t, b, &now, 200, false)
	require.LessOrEqual(t, acted, 20)
}

func TestASourceThatWasNeverRightIsDemotedWithinTwentyCloses(t *testing.T) {
	t.Parallel()
	for _, worth := range []float64{32, 1000} {
		b, now := newTrackRecords(t, evidence.Config{Allowance: 1e5}), noon
		acted := 0
		for range 100 {
			at := userTerms()
			at.WaitPrice = worth
			d, err := b.Consider(now, "x", recordAt(now), at)
			require.NoError(t, err)
			if d.Verdict == evidence.Accepted {
				acted++
			}
			require.NoError(t, b.Close(d.Until, "x", newOutcome(false)))
			now = now.Add(time.Hour)
		}
		require.LessOrEqual(t, acted, 20, "waiting worth %v", worth)
	}
}

func TestADemotedSourceComesBackWhenItHelpsAgain(t *testing.T) {
	t.Parallel()
	b, now := newTrackRecords(t, evidence.Config{Allowance: 10}), noon
	playRepeatedly(t, b, &now, 100, true)
	playRepeatedly(t, b, &now, 60, false)
	require.False(t, b.TrackRecord("llm", "announced").Acting)
	acted, _ := playRepeatedly(t, b, &now, 19, true)
	require.Zero(t, acted, "19 good closes are not enough")
	acted, loss := playRepeatedly(t, b, &now, 60, true)
	require.GreaterOrEqual(t, acted, 40)
	require.Negative(t, loss)
}

// What the budget cannot cover whole is held in part.
func TestASmallBudgetHoldsLess(t *testing.T) {
	t.Parallel()
	b := newTrackRecords(t, evidence.Config{Allowance: 0.5})
	d, err := b.Consider(noon, "x", believableRecord(), userTerms())
	require.NoError(t, err)
	require.Equal(t, evidence.Accepted, d.Verdict)
	require.Equal(t, 1, d.GPUs, "19 minutes of one GPU are less than half an hour, those of four are not")
}

// Who has lost the allowance is not acted on, proved or not, until it is refilled.
func TestALostAllowanceIsRefilledSlowly(t *testing.T) {
	t.Parallel()
	b, now := newTrackRecords(t, evidence.Config{Allowance: 0.7, Refill: 10 * 24 * time.Hour}), noon
	acted, loss := playRepeatedly(t, b, &now, 10, false)
	require.LessOrEqual(t, acted, 3, "two GPUs, then one, then none")
	require.InDelta(t, 0.7, loss+b.TrackRecord("llm", "announced").Left, 0.1)
	require.Less(t, b.TrackRecord("llm", "announced").Left, 0.4)
	b, now = newTrackRecords(t, b.Config()), noon
	playRepeatedly(t, b, &now, 3, false)
	now = now.Add(10 * 24 * time.Hour)
	playRepeatedly(t, b, &now, 1, false)
	require.InDelta(t, 0.7, b.TrackRecord("llm", "announced").Left, 0.01)
}

// A reason that does harm is not listened to; the source's good one is.
func TestReasonsOfASourceStandForThemselves(t *testing.T) {
	t.Parallel()
	b := newTrackRecords(t, evidence.Config{Allowance: 100})
	for i := range 200 {
		now := noon.Add(time.Duration(i) * time.Hour)
		for _, reason := range []string{"announced", "retry"} {
			r := recordAt(now)
			r.Reason = reason
			_, err := b.Consider(now, reason, r, userTerms())
			require.NoError(t, err)
			require.NoError(t, b.Close(now.Add(time.Hour), reason, newOutcome(reason == "announced")))
		}
	}
	require.True(t, b.TrackRecord("llm", "announced").Acting)
	require.Less(t, b.TrackRecord("llm", "retry").Trust, 0.05)
	require.Greater(t, b.TrackRecord("llm", "announced").Trust, 0.8)
}

// A message that is right only because statistics had it covered earns nothing.
func TestBeingRightWithoutUpliftEarnsNoTrust(t *testing.T) {
	t.Parallel()
	b := newTrackRecords(t, evidence.Config{Allowance: 100})
	for i := range 40 {
		now := noon.Add(time.Duration(i) * time.Hour)
		_, err := b.Consider(now, "x", recordAt(now), userTerms())
		require.NoError(t, err)
		require.NoError(t, b.Close(now, "x", evidence.Outcome{}))
	}
	s := b.TrackRecord("llm", "announced")
	require.Less(t, s.Trust, 0.05)
	require.Zero(t, s.Earned)
}

// A tenant of its own is judged by the kind's record at first, and then by its own.
func TestTrustIsSharedBetweenTenants(t *testing.T) {
	t.Parallel()
	b := newTrackRecords(t, evidence.Config{Allowance: 1000})
	trust := func(tenant string, closes int, came bool) (last float64) {
		for range closes {
			r := believableRecord()
			r.Tenant = tenant
			d, err := b.Consider(noon, tenant, r, userTerms())
			require.NoError(t, err)
			require.NoError(t, b.Close(noon, tenant, newOutcome(came)))
			last = d.Trust
		}
		return last
	}
	require.InDelta(t, 0.25, trust("a", 1, true), 1e-12)
	a := trust("a", 40, true)
	require.Greater(t, a, 0.9)
	first := trust("b", 1, false)
	require.Greater(t, first, 0.8, "b begins with what a has shown")
	require.Less(t, first, a)
	require.Less(t, trust("b", 20, false), 0.3, "and then stands for itself")
}

// Whatever a source says and whatever comes of it, TrackRecords never lets it lose
// more than the bound, counted from any moment on.
func TestAnyAdversaryIsBounded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := evidence.Config{Allowance: rapid.Float64Range(0, 20).Draw(t, "allowance"), Refill: 24 * time.Hour}
		b, err := evidence.New(c)
		require.NoError(t, err)
		now, began, low, sum := noon, noon, 0.0, 0.0
		var open []string
		for i := range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 3600).Draw(t, "gap")) * time.Second)
			id := fmt.Sprint(i)
			_, err := b.Consider(now, id, drawHostile(t, now), userTerms())
			require.NoError(t, err)
			if _, _, ok := b.Open(id); ok {
				open = append(open, id)
			}
			if len(open) == 0 || rapid.Bool().Draw(t, "keep open") {
				continue
			}
			n := rapid.IntRange(0, len(open)-1).Draw(t, "which")
			sum += closeWithOutcome(t, b, now, open[n])
			open = append(open[:n], open[n+1:]...)
			if sum < low {
				low, began = sum, now
			}
			bound := c.Allowance * (1 + float64(now.Sub(began))/float64(c.Refill))
			if math.IsNaN(sum) || sum-low > bound+1e-6 {
				t.Fatalf("lost %v since %v, at most %v are allowed", sum-low, began, bound)
			}
		}
	})
}

// closeWithOutcome closes a record with any outcome and returns what it really lost.
func closeWithOutcome(t *rapid.T, b *evidence.TrackRecords, now time.Time, id string) float64 {
	_, d, _ := b.Open(id)
	out, lost := drawOutcome(t), 0.0
	if d.Verdict == evidence.Accepted {
		out.Spent = float64(d.GPUs) * d.Until.Sub(d.From).Hours() * rapid.SampledFrom([]float64{0, 0.5, 1}).Draw(t,
			"spent")
		out.Spared = rapid.SampledFrom([]float64{0, 0, 0, 1, 20}).Draw(t, "spared")
		lost = out.Spent - out.Spared*32/12
	}
	require.NoError(t, b.Close(now, id, out))
	return lost
}

func drawHostile(t *rapid.T, now time.Time) evidence.Record {
	start := now.Add(time.Duration(rapid.IntRange(-600, 7200).Draw(t, "start")) * time.Second)
	mid := rapid.SampledFrom([]int{1, 2, 8, 64, evidence.MaxGPUs}).Draw(t, "mid")
	return evidence.Record{
		Source: "llm", Reason: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "reason"),
		Tenant: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "tenant"),
		Sent:   now, Start: start, End: start.Add(time.Duration(rapid.IntRange(0, 3600).Draw(t, "span")) * time.Second),
		Low: 0, Mid: mid, High: evidence.MaxGPUs,
		Probability: rapid.SampledFrom([]float64{0, 0.5, 1, math.NaN(), math.Inf(1)}).Draw(t, "probability"),
	}
}

// drawOutcome is an outcome that may be any number.
func drawOutcome(t *rapid.T) evidence.Outcome {
	var o evidence.Outcome
	any := rapid.SampledFrom([]float64{0, 1, 5, -3, math.NaN(), math.Inf(1), math.Inf(-1), 1e300})
	for i := range evidence.Sizes {
		o.Saved[i], o.Idle[i] = any.Draw(t, "saved"), any.Draw(t, "idle")
	}
	o.Spent, o.Spared = any.Draw(t, "spent?"), any.Draw(t, "spared?")
	return o
}

// Numbers that are none never enter the state.
func TestWildOutcomesLeaveASoundState(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b, err := evidence.New(evidence.Config{Allowance: 1e6})
		require.NoError(t, err)
		for range rapid.IntRange(1, 40).Draw(t, "records") {
			_, err := b.Consider(noon, "x", believableRecord(), userTerms())
			require.NoError(t, err)
			require.NoError(t, b.Close(noon, "x", drawOutcome(t)))
			b.Score(believableRecord(), rapid.SampledFrom([]float64{0, 0.3, 1, 7, -1, math.NaN(),
				math.Inf(1)}).Draw(t, "baseline"),
				rapid.Bool().Draw(t, "came"))
		}
		data, err := b.MarshalJSON()
		require.NoError(t, err)
		require.NoError(t, new(evidence.TrackRecords).UnmarshalJSON(data))
		s := b.TrackRecord("llm", "announced")
		for _, x := range []float64{s.Trust, s.Weight, s.Left, s.Spent, s.Earned} {
			require.False(t, math.IsNaN(x) || math.IsInf(x, 0) || x < 0, "%+v", s)
		}
	})
}

func TestOpenAndClose(t *testing.T) {
	t.Parallel()
	b := newTrackRecords(t, evidence.Config{Allowance: 10})
	d, err := b.Consider(noon, "x", believableRecord(), userTerms())
	require.NoError(t, err)
	_, err = b.Consider(noon, "x", believableRecord(), userTerms())
	require.ErrorIs(t, err, evidence.ErrOpen)
	r, same, ok := b.Open("x")
	require.True(t, ok)
	require.Equal(t, believableRecord(), r)
	require.Equal(t, d, same)
	require.NoError(t, b.Close(noon, "x", evidence.Outcome{}))
	require.ErrorIs(t, b.Close(noon, "x", evidence.Outcome{}), evidence.ErrUnknown)
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	for _, c := range []evidence.Config{{Allowance: -1}, {Allowance: math.NaN()}, {Allowance: math.Inf(1)},
		{Refill: time.Minute}} {
		_, err := evidence.New(c)
		require.Error(t, err)
	}
}
