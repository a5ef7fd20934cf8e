package evidence_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/evidence"
)

var noon = time.Date(2026, 3, 23, 12, 0, 0, 0, time.UTC)

// believableRecord is a believable record: four GPUs in half an hour.
func believableRecord() evidence.Record {
	return evidence.Record{
		Source: "llm", Reason: "announced", Tenant: "lab", Sent: noon, Start: noon.Add(30 * time.Minute),
		End: noon.Add(30 * time.Minute),
		Low: 2, Mid: 4, High: 8, Probability: 0.5,
	}
}

// recordAt is good() as it would be said at another time.
func recordAt(now time.Time) evidence.Record {
	r := believableRecord()
	r.Sent, r.Start, r.End = now, now.Add(30*time.Minute), now.Add(30*time.Minute)
	return r
}

// userTerms are those of a user to whom an hour of waiting is worth 32 GPU-hours.
func userTerms() evidence.Terms {
	return evidence.Terms{WaitPrice: 32, GPUPrice: 1, Boot: 5 * time.Minute, JobGPUs: 1}
}

func newTrackRecords(t testing.TB, c evidence.Config) *evidence.TrackRecords {
	t.Helper()
	b, err := evidence.New(c)
	require.NoError(t, err)
	return b
}

func TestCheckRefuses(t *testing.T) {
	t.Parallel()
	require.NoError(t, believableRecord().Check())
	for field, cases := range map[string][]func(*evidence.Record){
		"source": {
			func(r *evidence.Record) { r.Source = "" },
			func(r *evidence.Record) { r.Source = "a/b" },
			func(r *evidence.Record) { r.Source = strings.Repeat("a", 65) },
		},
		"reason": {func(r *evidence.Record) { r.Reason = "because I say so" }},
		"tenant": {func(r *evidence.Record) { r.Tenant = strings.Repeat("a", 257) }},
		"gpus": {
			func(r *evidence.Record) { r.Low = -1 },
			func(r *evidence.Record) { r.Low = 5 },
			func(r *evidence.Record) { r.Mid = 9 },
			func(r *evidence.Record) { r.Low, r.Mid = 0, 0 },
			func(r *evidence.Record) { r.High = math.MaxInt },
			func(r *evidence.Record) { r.High = evidence.MaxGPUs + 1 },
		},
		"probability": {
			func(r *evidence.Record) { r.Probability = math.NaN() },
			func(r *evidence.Record) { r.Probability = math.Inf(1) },
			func(r *evidence.Record) { r.Probability = -1e-9 },
			func(r *evidence.Record) { r.Probability = 1 + 1e-9 },
		},
		"time": {
			func(r *evidence.Record) { r.Sent = time.Time{} },
			func(r *evidence.Record) { r.Start = r.Start.AddDate(1000, 0, 0) },
		},
		"end": {
			func(r *evidence.Record) { r.End = r.Start.Add(-time.Second) },
			func(r *evidence.Record) { r.End = r.Start.AddDate(0, 0, 8) },
		},
	} {
		for i, spoil := range cases {
			r := believableRecord()
			spoil(&r)
			var wrong *evidence.RecordError
			require.ErrorAs(t, r.Check(), &wrong, "%s %d", field, i)
			require.Equal(t, field, wrong.Field)
			d, err := newTrackRecords(t, evidence.Config{Allowance: 1e6}).Consider(noon, "x", r, userTerms())
			require.NoError(t, err)
			require.Equal(t, evidence.Invalid, d.Verdict, "%s %d", field, i)
			require.Zero(t, d.GPUs)
		}
	}
}

func TestJudgedSizes(t *testing.T) {
	t.Parallel()
	r := believableRecord()
	require.Equal(t, []int{2, 4, 8}, []int{r.Held(0), r.Held(1), r.Held(2)})
	r.Mid = 1
	require.Equal(t, []int{1, 1, 2}, []int{r.Held(0), r.Held(1), r.Held(2)})
	r.Mid = evidence.MaxGPUs
	require.Equal(t, evidence.MaxGPUs, r.Held(2))
	require.Equal(t, 3, evidence.Sizes)
}
