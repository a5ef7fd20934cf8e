package forecast

import (
	"encoding/json"
	"math/rand"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var monday = time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)

// arrival is one job of a made-up history.
type arrival struct {
	at   time.Time
	gpus int
}

func anyConfig(t *rapid.T) Config {
	return rapid.SampledFrom([]Config{
		{},
		{HalfLife: 14 * 24 * time.Hour},
		{Period: 10 * time.Minute, Bin: time.Minute, PriorWeight: 2},
		{Period: 24 * time.Hour, Bin: 10 * time.Minute, Window: time.Minute},
	}).Draw(t, "config")
}

func anyHistory(t *rapid.T) []arrival {
	var history []arrival
	at := monday
	for range rapid.IntRange(0, 40).Draw(t, "arrivals") {
		at = at.Add(time.Duration(rapid.IntRange(0, 3*3600).Draw(t, "gap")) * time.Second)
		history = append(history, arrival{at, rapid.IntRange(1, 16).Draw(t, "gpus")})
	}
	return history
}

func feedSeries(t require.TestingT, s *Series, history []arrival) {
	for _, a := range history {
		require.NoError(t, s.Observe(a.at, a.gpus))
	}
}

func newSeries(t require.TestingT, c Config) *Series {
	s, err := New(c)
	require.NoError(t, err)
	return s
}

func TestSeriesLearnsTheHourOfTheWeek(t *testing.T) {
	t.Parallel()
	s := newSeries(t, Config{})
	for week := range 12 {
		for i := range 10 {
			at := monday.AddDate(0, 0, 7*week).Add(9*time.Hour + time.Duration(i)*6*time.Minute)
			require.NoError(t, s.Observe(at, 4))
		}
	}
	next := monday.AddDate(0, 0, 7*12)
	require.NoError(t, s.Advance(next))
	busy, quiet := s.At(next.Add(9*time.Hour), time.Hour), s.At(next.Add(3*time.Hour), time.Hour)
	require.Greater(t, busy.Mean(), 30.0, "40 GPUs came every Monday at nine")
	require.Less(t, quiet.Mean(), 0.1)
	require.Greater(t, busy.Any(), 0.99)
	require.Equal(t, 4, s.Largest())
	require.Equal(t, 4.0, s.JobGPUs())
	require.Equal(t, int64(120), s.Jobs())
}

func TestAnEmptySeriesExpectsNothing(t *testing.T) {
	t.Parallel()
	s := newSeries(t, Config{})
	require.NoError(t, s.Advance(monday))
	require.Zero(t, s.At(monday, time.Hour).Levels())
	require.Equal(t, 1.0, s.JobGPUs())
	require.NoError(t, s.Observe(monday.Add(-time.Hour), 1), "Advance before the first arrival closes nothing")
}

func TestSilenceLowersTheForecast(t *testing.T) {
	t.Parallel()
	s := newSeries(t, Config{})
	require.NoError(t, s.Observe(monday, 8))
	require.NoError(t, s.Advance(monday.Add(6*time.Minute)))
	before := s.At(monday.Add(time.Hour), time.Hour)
	require.NoError(t, s.Advance(monday.Add(24*time.Hour)))
	after := s.At(monday.Add(25*time.Hour), time.Hour)
	require.Less(t, after.Mean(), before.Mean()/10)
}

func TestSeriesRefusesWhatItCannotCount(t *testing.T) {
	t.Parallel()
	s := newSeries(t, Config{})
	require.NoError(t, s.Observe(monday.Add(time.Hour), 1))
	before, err := json.Marshal(s)
	require.NoError(t, err)

	var order *OrderError
	require.ErrorAs(t, s.Observe(monday, 1), &order)
	require.Equal(t, monday, order.At)
	for _, gpus := range []int{0, -1, MaxJob + 1} {
		require.ErrorIs(t, s.Observe(monday.Add(time.Hour), gpus), ErrGPUs)
	}
	require.ErrorIs(t, s.Observe(time.Time{}, 1), ErrTime)
	require.ErrorIs(t, s.Advance(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)), ErrTime)
	require.NoError(t, s.Advance(monday), "going back is no news")

	after, err := json.Marshal(s)
	require.NoError(t, err)
	require.JSONEq(t, string(before), string(after))
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]Config{
		"window":         {Window: 1500 * time.Millisecond},
		"bin":            {Bin: time.Hour, Window: 7 * time.Minute},
		"period":         {Period: 90 * time.Minute, Bin: time.Hour},
		"too many bins":  {Bin: time.Second, Window: time.Second},
		"prior":          {PriorWeight: -1},
		"half-life":      {HalfLife: -1},
		"negative width": {Bin: -time.Hour},
	} {
		_, err := New(c)
		require.Error(t, err, name)
	}
}

func TestStateRoundTripIsExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := newSeries(t, anyConfig(t))
		feedSeries(t, s, anyHistory(t))
		data, err := json.Marshal(s)
		require.NoError(t, err)
		var back Series
		require.NoError(t, json.Unmarshal(data, &back))
		require.Equal(t, *s, back)
		later := arrival{monday.AddDate(0, 1, 0), 3}
		feedSeries(t, s, []arrival{later})
		feedSeries(t, &back, []arrival{later})
		require.Equal(t, s.At(later.at, 5*time.Hour), back.At(later.at, 5*time.Hour))
	})
}

func TestStateIsChecked(t *testing.T) {
	t.Parallel()
	s := newSeries(t, Config{Period: 2 * time.Minute, Bin: time.Minute})
	feedSeries(t, s, []arrival{{monday, 2}, {monday.Add(time.Minute), 1}})
	good, err := json.Marshal(s)
	require.NoError(t, err)
	for name, change := range map[string]func(map[string]any){
		"version": func(m map[string]any) { m["version"] = 2 },
		"unknown": func(m map[string]any) { m["extra"] = 1 },
		"bins":    func(m map[string]any) { m["bins"] = []any{} },
		"counts":  func(m map[string]any) { m["jobs"] = -1 },
		"sums":    func(m map[string]any) { m["total"] = map[string]any{"n": -1} },
		"config":  func(m map[string]any) { m["config"] = map[string]any{} },
	} {
		var m map[string]any
		require.NoError(t, json.Unmarshal(good, &m))
		change(m)
		bad, err := json.Marshal(m)
		require.NoError(t, err)
		kept := newSeries(t, Config{})
		require.Error(t, json.Unmarshal(bad, kept), name)
		require.Equal(t, newSeries(t, Config{}), kept, name)
	}
}

func TestOrderWithinAWindowDoesNotMatter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := anyConfig(t)
		history := anyHistory(t)
		same := make([]arrival, 5)
		for i := range same {
			same[i] = arrival{monday.AddDate(0, 0, 30), rapid.IntRange(1, 9).Draw(t, "gpus")}
		}
		a, b := newSeries(t, c), newSeries(t, c)
		feedSeries(t, a, append(history, same...))
		shuffle := rand.New(rand.NewSource(rapid.Int64().Draw(t, "seed")))
		shuffle.Shuffle(len(same), func(i, j int) { same[i], same[j] = same[j], same[i] })
		feedSeries(t, b, append(history, same...))
		require.Equal(t, a, b)
	})
}

func TestForecastsAddUpOverTime(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := newSeries(t, anyConfig(t))
		feedSeries(t, s, anyHistory(t))
		start := monday.Add(time.Duration(rapid.Int64Range(0, int64(1000*time.Hour)).Draw(t, "start")))
		first := time.Duration(rapid.Int64Range(1, int64(300*time.Hour)).Draw(t, "first"))
		second := time.Duration(rapid.Int64Range(1, int64(300*time.Hour)).Draw(t, "second"))
		mean, variance := s.Moments(start, first+second)
		m1, v1 := s.Moments(start, first)
		m2, v2 := s.Moments(start.Add(first), second)
		require.InDelta(t, m1+m2, mean, 1e-6*(1+mean))
		require.InDelta(t, v1+v2, variance, 1e-6*(1+variance))
	})
}

// Advancing in one jump must count the same silence as advancing window by
// window, and what was forecast must not change with what came later.
func TestOneJumpEqualsManySteps(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := anyConfig(t)
		history := anyHistory(t)
		jump, steps := newSeries(t, c), newSeries(t, c)
		feedSeries(t, jump, append(history, arrival{monday.AddDate(0, 0, 10), 1}))
		feedSeries(t, steps, append(history, arrival{monday.AddDate(0, 0, 10), 1}))
		width := jump.Config().Window
		n := rapid.IntRange(0, 3000).Draw(t, "windows")
		end := monday.AddDate(0, 0, 10).Add(time.Duration(n) * width)
		require.NoError(t, jump.Advance(end))
		for i := range n + 1 {
			require.NoError(t, steps.Advance(end.Add(-time.Duration(n-i)*width)))
		}
		a, va := jump.Moments(end, 10*time.Hour)
		b, vb := steps.Moments(end, 10*time.Hour)
		require.InEpsilon(t, b+1, a+1, 1e-9)
		require.InEpsilon(t, vb+1, va+1, 1e-9)
	})
}

func TestForecastIsCausal(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := anyConfig(t)
		history := anyHistory(t)
		cut := rapid.IntRange(0, len(history)).Draw(t, "cut")
		early, whole := newSeries(t, c), newSeries(t, c)
		feedSeries(t, early, history[:cut])
		now := monday.AddDate(0, 0, 20)
		want := early.At(now, time.Hour)
		feedSeries(t, whole, history[:cut])
		got := whole.At(now, time.Hour)
		feedSeries(t, whole, history[cut:])
		require.Equal(t, want, got, "a forecast is a value that later arrivals do not touch")
	})
}

func BenchmarkObserveAfterMonthsOfSilence(b *testing.B) {
	s := newSeries(b, Config{HalfLife: 60 * 24 * time.Hour})
	at := monday
	for b.Loop() {
		at = at.Add(90 * 24 * time.Hour)
		if at.Year() > 2190 {
			s, at = newSeries(b, Config{}), monday
		}
		if err := s.Observe(at, 4); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAt(b *testing.B) {
	s := newSeries(b, Config{})
	feedSeries(b, s, []arrival{{monday, 8}, {monday.Add(time.Hour), 64}})
	for b.Loop() {
		s.At(monday, time.Hour)
	}
}
