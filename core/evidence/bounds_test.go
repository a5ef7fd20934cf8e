package evidence_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/evidence"
)

// What is just within the limits of a record is one.
func TestCheckAcceptsWhatIsJustWithin(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*evidence.Record){
		"a long name":       func(r *evidence.Record) { r.Source = strings.Repeat("a", 64) },
		"each kind of sign": func(r *evidence.Record) { r.Reason = "azAZ09_-." },
		"a long tenant":     func(r *evidence.Record) { r.Tenant = strings.Repeat("a", 256) },
		"all the same":      func(r *evidence.Record) { r.Low, r.Mid, r.High = 4, 4, 4 },
		"at least nothing":  func(r *evidence.Record) { r.Low, r.Mid = 0, 1 },
		"all there are":     func(r *evidence.Record) { r.High = evidence.MaxGPUs },
		"never":             func(r *evidence.Record) { r.Probability = 0 },
		"certain":           func(r *evidence.Record) { r.Probability = 1 },
		"a week":            func(r *evidence.Record) { r.End = r.Start.AddDate(0, 0, 7) },
		"at once":           func(r *evidence.Record) { r.End = r.Start },
		"long ago":          func(r *evidence.Record) { r.Sent = time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC) },
		"far ahead": func(r *evidence.Record) {
			r.Start = time.Date(2200, 12, 31, 0, 0, 0, 0, time.UTC)
			r.End = r.Start.Add(time.Hour)
		},
	} {
		r := believableRecord()
		change(&r)
		require.NoError(t, r.Check(), name)
	}
	for _, sign := range []string{"/", ":", "@", "[", "`", "{", "é"} {
		r := believableRecord()
		r.Source = "a" + sign
		require.Error(t, r.Check(), "signs just beside those that are allowed: %q", sign)
	}
}

func TestTermsThatJustCanBe(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*evidence.Terms){
		"waiting is worth nothing": func(at *evidence.Terms) { at.WaitPrice = 0 },
		"a boot of a week":         func(at *evidence.Terms) { at.Boot = 7 * 24 * time.Hour },
	} {
		at := userTerms()
		change(&at)
		d, err := newTrackRecords(t, evidence.Config{Allowance: 1e6}).Consider(noon, "x", believableRecord(), at)
		require.NoError(t, err)
		require.NotEqual(t, evidence.Invalid, d.Verdict, name)
	}
	most := evidence.Terms{MaxGPUs: evidence.MaxGPUs}.WithDefaults()
	require.Equal(t, evidence.MaxGPUs, most.MaxGPUs)
	require.Equal(t, evidence.MaxGPUs, evidence.Terms{MaxGPUs: evidence.MaxGPUs + 1}.WithDefaults().MaxGPUs)
	require.Equal(t, 1, evidence.Terms{MaxGPUs: 1}.WithDefaults().MaxGPUs)
	_, err := evidence.New(evidence.Config{Allowance: 0, Refill: time.Hour})
	require.NoError(t, err)
	_, err = evidence.New(evidence.Config{Allowance: 1e6})
	require.NoError(t, err)
}

// setNumber returns the stored state with the value at a path replaced.
func setNumber(t *testing.T, whole []byte, value any, path ...any) []byte {
	t.Helper()
	var state any
	require.NoError(t, json.Unmarshal(whole, &state))
	at := state
	for _, step := range path[:len(path)-1] {
		switch step := step.(type) {
		case string:
			at = at.(map[string]any)[step]
		case int:
			at = at.([]any)[step]
		}
		require.NotNil(t, at, "%v", path)
	}
	switch last := path[len(path)-1].(type) {
	case string:
		require.Contains(t, at, last, "%v", path)
		at.(map[string]any)[last] = value
	case int:
		at.([]any)[last] = value
	}
	changed, err := json.Marshal(state)
	require.NoError(t, err)
	return changed
}

func gainsOf(n int) []float64 { return make([]float64, n) }

// A state is read if each of its numbers can have come from counting, up to the very
// last, and not beyond.
func TestAStateIsReadUpToItsBounds(t *testing.T) {
	t.Parallel()
	b, now := newTrackRecords(t, evidence.Config{Allowance: 5}), noon
	playRepeatedly(t, b, &now, 30, true)
	closeRepeatedly(b, 30, true)
	_, err := b.Consider(now, "open", recordAt(now), userTerms())
	require.NoError(t, err)
	whole, err := json.Marshal(b)
	require.NoError(t, err)
	kind := func(path ...any) []any { return append([]any{"kinds", "llm/announced"}, path...) }
	source := func(path ...any) []any { return append([]any{"sources", "llm"}, path...) }
	open := func(path ...any) []any { return append([]any{"open", "open"}, path...) }
	type bounds struct {
		path []any
		good []any
		bad  []any
	}
	all := []bounds{
		{[]any{"config", "allowance"}, []any{0, 1e6}, []any{-1e-9, 1e6 + 1}},
		{[]any{"config", "refill"}, []any{time.Hour}, []any{time.Hour - 1}},
		{kind("voice", "platt", "a"), []any{-5, 5}, []any{-5.001, 5.001}},
		{kind("voice", "platt", "b"), []any{0, 3}, []any{-0.001, 3.001}},
		{kind("voice", "platt", "aa"), []any{1e-9}, []any{0, -1}},
		{kind("voice", "platt", "bb"), []any{1e-9}, []any{0, -1}},
		{kind("voice", "n"), []any{0, 44}, []any{-0.001, 44.001}},
		{kind("voice", "weight"), []any{0, evidence.MaxWeight}, []any{-0.001, evidence.MaxWeight + 0.001}},
		{kind("said"), []any{0, 1}, []any{-0.001, 1.001}},
		{kind("fleet", "n"), []any{44}, []any{44.001, 0}},
		{kind("fleet", "right"), []any{0}, []any{-0.001, 44}},
		{kind("fleet", "saved", 0), []any{0, 16 * 44}, []any{-0.001, 16*44 + 0.001}},
		{kind("fleet", "idle", 0), []any{0, 44}, []any{-0.001, 44.001}},
		{kind("tenants", "lab", "idle", 2), []any{0, 44}, []any{-0.001, 44.001}},
		{source("purse", "balance"), []any{0}, []any{-0.001}},
		{source("purse", "held"), []any{0}, []any{-0.001}},
		{source("purse", "spent"), []any{0}, []any{-0.001}},
		{source("purse", "earned"), []any{0}, []any{-0.001}},
		{open("jobs", 0), []any{1}, []any{0.999}},
		{open("hours", 0), []any{1e-9}, []any{0}},
		{open("worth"), []any{0}, []any{-0.001}},
		{open("reserved"), []any{0}, []any{-0.001}},
		{open("decision", "size"), []any{0, 2}, []any{-1, 3}},
	}
	for _, record := range [][]any{kind("standing"), kind("voice", "standing"), source("standing"), source("voice")} {
		at := func(name string) []any { return append(append([]any{}, record...), name) }
		all = append(all,
			bounds{at("since"), []any{0, 20}, []any{-1, 21}}, bounds{at("n"), []any{0, 44}, []any{-0.001, 44.001}},
			bounds{at("squares"), []any{0}, []any{-0.001}}, bounds{at("gains"), []any{gainsOf(20)}, []any{gainsOf(21)}})
	}
	for _, c := range all {
		for _, value := range c.good {
			var back evidence.TrackRecords
			require.NoError(t, back.UnmarshalJSON(setNumber(t, whole, value, c.path...)), "%v: %v", c.path, value)
		}
		for _, value := range c.bad {
			var back evidence.TrackRecords
			require.Error(t, back.UnmarshalJSON(setNumber(t, whole, value, c.path...)), "%v: %v", c.path, value)
		}
	}
}

func TestAWatchIsReadUpToItsBounds(t *testing.T) {
	t.Parallel()
	w := evidence.NewWatch(boot)
	w.Plan(atMinute(-3), 2)
	w.Open(atMinute(0), "x", believableRecord(), acceptHold(atMinute(0), 4))
	whole, err := json.Marshal(w)
	require.NoError(t, err)
	const week = 7 * 24 * time.Hour
	for _, c := range []struct {
		path []any
		good []any
		bad  []any
	}{
		{[]any{"boot"}, []any{1, week}, []any{0, week + 1}},
		{[]any{"level"}, []any{0}, []any{-1}},
		{[]any{"demand"}, []any{0}, []any{-1}},
		{[]any{"holds", 0, "held"}, []any{0}, []any{-1}},
		{[]any{"holds", 0, "arrived"}, []any{0}, []any{-1}},
	} {
		for _, value := range c.good {
			require.NoError(t, new(evidence.Watch).UnmarshalJSON(setNumber(t, whole, value, c.path...)), "%v", c.path)
		}
		for _, value := range c.bad {
			require.Error(t, new(evidence.Watch).UnmarshalJSON(setNumber(t, whole, value, c.path...)), "%v", c.path)
		}
	}
}

// model follows one kind of one source by the formulas themselves.
type model struct {
	a, b, aa, ab, bb, base, n, weight float64
	gains                             []float64
}

func clampBetween(x, low, high float64) float64 { return math.Max(low, math.Min(high, x)) }

func logOdds(p float64) float64 {
	p = clampBetween(p, 0.01, 0.99)
	return math.Log(p) - math.Log(1-p)
}

func chanceOf(x float64) float64 { return math.Exp(x) / (1 + math.Exp(x)) }

// scoreOutcome is one step of Newton's method on the log loss, whose past and prior
// fade by half in 30 closes.
func (m *model) scoreOutcome(stated, baseline float64, came bool) {
	keep := math.Pow(0.5, 1.0/30)
	said := chanceOf(m.a + m.b*logOdds(stated))
	base := (4*logOdds(baseline) + m.n*m.base) / (4 + m.n)
	ratio := clampBetween(math.Exp(logOdds(said)-base), 1.0/150, 150)
	with := clampBetween(chanceOf(logOdds(baseline)+math.Log(ratio)), 0.01, 0.99)
	without, happened := baseline, 0.0
	if came {
		happened = 1
	} else {
		with, without = 1-with, 1-without
	}
	m.gains = append(m.gains, math.Log(with)-math.Log(without))
	m.weight = clampBetween(m.weight*with/(m.weight*with+(1-m.weight)*without), 0.01, 0.5)
	m.base = (keep*m.n*m.base + logOdds(baseline)) / (keep*m.n + 1)
	m.n = 1 + keep*m.n
	x, h := logOdds(stated), said-said*said
	m.aa = h + keep*m.aa + 2 - 2*keep
	m.ab = h*x + keep*m.ab
	m.bb = h*x*x + keep*m.bb + 2 - 2*keep
	ga := happened - said - (2-2*keep)*m.a
	gb := (happened-said)*x - (2-2*keep)*(m.b-1)
	det := m.aa*m.bb - m.ab*m.ab
	m.a = clampBetween(m.a+(ga*m.bb-gb*m.ab)/det, -5, 5)
	m.b = clampBetween(m.b+(gb*m.aa-ga*m.ab)/det, 0, 3)
}

func TestCalibrationIsNewtonsMethod(t *testing.T) {
	t.Parallel()
	b := newTrackRecords(t, evidence.Config{Allowance: 1})
	m := model{b: 1, aa: 2, bb: 2, weight: 0.25}
	for i := range 60 {
		r := believableRecord()
		r.Probability = []float64{0.05, 0.3, 0.6, 0.9, 1}[i%5]
		baseline, came := []float64{0.2, 0.5, 0.35}[i%3], i%4 == 0 || i%5 == 3
		b.Score(r, baseline, came)
		m.scoreOutcome(r.Probability, baseline, came)
		var state struct {
			Kinds map[string]struct {
				Calibration struct {
					Platt           struct{ A, B, AA, AB, BB float64 }
					Base, N, Weight float64
					Standing        struct{ Gains []float64 }
				} `json:"voice"`
			}
		}
		data, err := json.Marshal(b)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(data, &state))
		v := state.Kinds["llm/announced"].Calibration
		require.InDeltaSlice(t, []float64{m.a, m.b, m.aa, m.ab, m.bb, m.base, m.n, m.weight},
			[]float64{v.Platt.A, v.Platt.B, v.Platt.AA, v.Platt.AB, v.Platt.BB, v.Base, v.N, v.Weight}, 1e-9,
			fmt.Sprintf("after %d closes", i+1))
		require.InDeltaSlice(t, m.gains[max(0, len(m.gains)-20):], v.Standing.Gains, 1e-9)
	}
}

// standing follows whether a source may act, by the rule itself.
type standing struct {
	last            []float64
	demoted         bool
	since           int
	n, sum, squares float64
}

func (s *standing) addGain(gain float64) {
	keep := math.Pow(0.5, 1.0/30)
	s.last = append(s.last, gain)
	if len(s.last) > 20 {
		if oldest := s.last[0]; !s.demoted {
			s.n, s.sum, s.squares = 1+keep*s.n, oldest+keep*s.sum, oldest*oldest+keep*s.squares
		}
		s.last = s.last[1:]
	}
	s.since++
	total, moved := 0.0, 0.0
	for _, g := range s.last {
		total, moved = total+g, moved+math.Abs(g)
	}
	// Twenty like those before come to 20 means, give or take √20 deviations.
	mean := s.sum / s.n
	usual := 20*mean - 2*math.Sqrt(20*math.Max(0, s.squares/s.n-mean*mean))
	switch {
	case !s.demoted && len(s.last) == 20 && total < 0 && (s.n < 10 || total <= usual):
		s.demoted, s.since = true, 0
	case s.demoted && s.since >= 20 && total > moved/10:
		s.demoted, s.since = false, 0
	}
}

// Histories in which a source is now right, now wrong, and now by chance.
func TestASourceIsDemotedByItsRecord(t *testing.T) {
	t.Parallel()
	changes := 0
	for seed := range uint64(30) {
		chance := rand.New(rand.NewPCG(seed, 1))
		b := newTrackRecords(t, evidence.Config{Allowance: 1})
		m := model{b: 1, aa: 2, bb: 2, weight: 0.25}
		var kind, source standing
		truth := 0.9
		for i := range 200 {
			if i%40 == 39 {
				truth = []float64{0.05, 0.3, 0.5, 0.7, 0.95}[chance.IntN(5)]
			}
			came := chance.Float64() < 0.4
			r := believableRecord()
			r.Probability = 0.1
			if came == (chance.Float64() < truth) {
				r.Probability = 0.8
			}
			b.Score(r, 0.4, came)
			m.scoreOutcome(r.Probability, 0.4, came)
			before, gain := kind.demoted, m.gains[len(m.gains)-1]
			kind.addGain(gain)
			if !before {
				source.addGain(gain)
			}
			if before != kind.demoted {
				changes++
			}
			want := m.weight
			if kind.demoted || source.demoted {
				want = 0
			}
			require.InDelta(t, want, b.Weight("llm", "announced"), 1e-9, "seed %d, close %d", seed, i)
		}
	}
	require.Greater(t, changes, 20, "it was demoted and came back often enough to see")
}

// As many as are kept are kept, and read back; one more is judged by what is known
// of its kind, or not at all.
func TestWhatIsKeptIsBoundedToTheLast(t *testing.T) {
	t.Parallel()
	const kinds, tenants, open = 256, 1024, 4096
	reread := func(b *evidence.TrackRecords) *evidence.TrackRecords {
		data, err := json.Marshal(b)
		require.NoError(t, err)
		var back evidence.TrackRecords
		require.NoError(t, json.Unmarshal(data, &back))
		return &back
	}
	consider := func(b *evidence.TrackRecords, r evidence.Record, id int) evidence.Verdict {
		d, err := b.Consider(noon, fmt.Sprint(id), r, userTerms())
		require.NoError(t, err)
		return d.Verdict
	}
	many := newTrackRecords(t, evidence.Config{Allowance: 5})
	for i := range open {
		require.NotEqual(t, evidence.Crowded, consider(many, believableRecord(), i), "open: %d", i)
	}
	require.Equal(t, evidence.Crowded, consider(reread(many), believableRecord(), open))

	sources := newTrackRecords(t, evidence.Config{Allowance: 5})
	r := believableRecord()
	for i := range kinds {
		r.Source = fmt.Sprintf("source-%d", i)
		require.NotEqual(t, evidence.Crowded, consider(sources, r, i), "source: %d", i)
	}
	r.Source = "another"
	require.Equal(t, evidence.Crowded, consider(sources, r, kinds))
	reread(sources)

	b, now := newTrackRecords(t, evidence.Config{Allowance: 1e6}), noon
	for i := range tenants + 1 {
		r := recordAt(now)
		r.Tenant = fmt.Sprintf("tenant-%d", i)
		d, err := b.Consider(now, "x", r, userTerms())
		require.NoError(t, err)
		require.NoError(t, b.Close(d.Until, "x", newOutcome(true)))
	}
	data, err := json.Marshal(reread(b))
	require.NoError(t, err)
	require.Contains(t, string(data), `"tenant-1023"`)
	require.NotContains(t, string(data), `"tenant-1024"`)
}

func TestWhatASourceMayLoseCanBeChanged(t *testing.T) {
	t.Parallel()
	b := newTrackRecords(t, evidence.Config{Allowance: 5})
	require.NoError(t, b.Reconfigure(evidence.Config{Allowance: 7}))
	require.Equal(t, evidence.Config{Allowance: 7, Refill: 30 * 24 * time.Hour}, b.Config())
	require.Error(t, b.Reconfigure(evidence.Config{Allowance: -1}))
	require.InDelta(t, 7, b.Config().Allowance, 0, "it stays")
	_, err := evidence.New(evidence.Config{Allowance: -1})
	require.Error(t, err)
}
