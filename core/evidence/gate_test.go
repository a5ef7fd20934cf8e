package evidence_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/evidence"
)

// The rule of a new kind, by hand: trust 1/4, of which three quarters are counted on, and
// nearly all of the hold idles. A hold
// of one GPU lasts 5 + 2 + 12 minutes at most.
func TestTheGateOfANewKind(t *testing.T) {
	t.Parallel()
	r := believableRecord()
	r.Low, r.Mid, r.High = 1, 1, 1
	for _, c := range []struct {
		worth float64
		want  evidence.Verdict
	}{{16.6, evidence.Unworthy}, {16.8, evidence.Accepted}} {
		terms := userTerms()
		terms.WaitPrice = c.worth
		d, err := newTrackRecords(t, evidence.Config{Allowance: 10}).Consider(noon, "x", r, terms)
		require.NoError(t, err)
		require.Equal(t, c.want, d.Verdict, d.Explain())
		require.InDelta(t, 0.25, d.Trust, 1e-12)
		require.InDelta(t, c.worth*0.25*0.75/12, d.Gain, 1e-9)
		require.InDelta(t, 19.0/60*0.825, d.Cost, 1e-9)
		require.Equal(t, r.Start.Add(-7*time.Minute), d.From)
		require.Equal(t, r.Start.Add(12*time.Minute), d.Until)
	}
}

// What was claimed and always needed whole is held whole; twice of it never pays.
func TestAProvedSourceIsHeldAsClaimed(t *testing.T) {
	t.Parallel()
	b, now := newTrackRecords(t, evidence.Config{Allowance: 100}), noon
	playRepeatedly(t, b, &now, 40, true)
	d, err := b.Consider(now, "x", recordAt(now), userTerms())
	require.NoError(t, err)
	require.Equal(t, 4, d.GPUs, d.Explain())
	require.Greater(t, d.Trust, 0.9)
}

func TestMinimumBillingAndCapsCount(t *testing.T) {
	t.Parallel()
	terms := userTerms()
	terms.MinBilling, terms.MaxGPUs = time.Hour, 3
	d, err := newTrackRecords(t, evidence.Config{Allowance: 10}).Consider(noon, "x", believableRecord(), terms)
	require.NoError(t, err)
	require.LessOrEqual(t, d.GPUs, 3)
	terms.MinBilling = 0
	cheap, err := newTrackRecords(t, evidence.Config{Allowance: 10}).Consider(noon, "x", believableRecord(), terms)
	require.NoError(t, err)
	require.Greater(t, d.Cost, cheap.Cost)
}

func TestARangeOfTimesIsHeldPastItsEnd(t *testing.T) {
	t.Parallel()
	r := believableRecord()
	r.End = r.Start.Add(time.Hour)
	from, doubt, until := userTerms().Hold(r)
	require.Equal(t, r.Start.Add(-7*time.Minute), from)
	require.Equal(t, r.End.Add(4*time.Minute), doubt)
	require.Equal(t, r.End.Add(12*time.Minute), until)
}

func TestVerdictsExplainThemselves(t *testing.T) {
	t.Parallel()
	b := newTrackRecords(t, evidence.Config{Allowance: 1.3})
	d, err := b.Consider(noon, "a", believableRecord(), userTerms())
	require.NoError(t, err)
	require.Contains(t, d.Explain(), "hold 4 GPUs from 12:23:00 to 12:42:00")
	d, err = b.Consider(noon, "b", believableRecord(), userTerms())
	require.NoError(t, err)
	require.Equal(t, evidence.Broke, d.Verdict)
	require.Zero(t, d.GPUs)
	require.Contains(t, d.Explain(), "lost what it may lose")
	d, err = b.Consider(noon.Add(time.Hour), "c", believableRecord(), userTerms())
	require.NoError(t, err)
	require.Equal(t, evidence.Late, d.Verdict)
	require.Contains(t, d.Explain(), "too_late")
	_, _, open := b.Open("c")
	require.False(t, open)
}

func TestTermsThatCannotBe(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*evidence.Terms){
		"nan":      func(t *evidence.Terms) { t.WaitPrice = math.NaN() },
		"infinite": func(t *evidence.Terms) { t.WaitPrice = math.Inf(1) },
		"negative": func(t *evidence.Terms) { t.WaitPrice = -1 },
		"free":     func(t *evidence.Terms) { t.GPUPrice = 0 },
		"no boot":  func(t *evidence.Terms) { t.Boot = 0 },
		"gpus nan": func(t *evidence.Terms) { t.JobGPUs = math.Inf(1) },
		"guard":    func(t *evidence.Terms) { t.Guard = -1 },
		"tail":     func(t *evidence.Terms) { t.Tail = -1 },
		"billing":  func(t *evidence.Terms) { t.MinBilling = -1 },
		"forever":  func(t *evidence.Terms) { t.Boot = math.MaxInt64 },
	} {
		bad := userTerms()
		spoil(&bad)
		d, err := newTrackRecords(t, evidence.Config{Allowance: 10}).Consider(noon, "x", believableRecord(), bad)
		require.NoError(t, err)
		require.Equal(t, evidence.Invalid, d.Verdict, name)
	}
}

// A record that is worth it stays so when waiting gets dearer, GPUs get cheaper
// or the source is surer.
func TestTheGateIsMonotone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		state := someBook(t)
		r, at := believableRecord(), userTerms()
		r.Mid = rapid.IntRange(1, 64).Draw(t, "gpus")
		r.Low, r.High = 0, 64
		r.Probability = rapid.Float64Range(0, 1).Draw(t, "probability")
		at.WaitPrice = rapid.Float64Range(0, 200).Draw(t, "worth")
		at.GPUPrice = rapid.Float64Range(0.1, 10).Draw(t, "price")
		at.JobGPUs = rapid.Float64Range(1, 16).Draw(t, "size")
		worse := decideOn(t, state, r, at)
		r.Probability = rapid.Float64Range(r.Probability, 1).Draw(t, "surer")
		at.WaitPrice *= rapid.Float64Range(1, 4).Draw(t, "dearer")
		at.GPUPrice /= rapid.Float64Range(1, 4).Draw(t, "cheaper")
		better := decideOn(t, state, r, at)
		if worse.Verdict == evidence.Accepted && better.Verdict != evidence.Accepted {
			t.Fatalf("%s, but %s", worse.Explain(), better.Explain())
		}
	})
}

// someBook is the state of TrackRecords with some past.
func someBook(t *rapid.T) []byte {
	b, err := evidence.New(evidence.Config{Allowance: 1e6})
	require.NoError(t, err)
	for range rapid.IntRange(0, 15).Draw(t, "past") {
		r := believableRecord()
		r.Probability = rapid.Float64Range(0, 1).Draw(t, "said")
		_, err := b.Consider(noon, "past", r, userTerms())
		require.NoError(t, err)
		came := rapid.Bool().Draw(t, "came")
		b.Score(r, 0.2, came)
		require.NoError(t, b.Close(noon, "past", newOutcome(came)))
	}
	data, err := b.MarshalJSON()
	require.NoError(t, err)
	return data
}

func decideOn(t *rapid.T, state []byte, r evidence.Record, at evidence.Terms) evidence.Decision {
	var b evidence.TrackRecords
	require.NoError(t, b.UnmarshalJSON(state))
	d, err := b.Consider(noon, "x", r, at)
	require.NoError(t, err)
	return d
}
