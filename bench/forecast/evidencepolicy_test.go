package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/backtest"
	"github.com/forewarm/forewarm/core/evidence"
)

// sparseTrace is a tenant with a session of four jobs of two GPUs every five to
// eleven hours.
func sparseTrace(sessions int) (t backtest.Trace, starts []int64) {
	t.Tenants = []string{"lab"}
	at, seed := int64(1_700_000_000), uint64(1)
	for range sessions {
		starts = append(starts, at)
		for n := range int64(4) {
			t.Jobs = append(t.Jobs, backtest.Job{ID: time.Unix(at+n, 0).String(), Submit: at + 90*n,
				Duration: 20 * 3600, GPUs: 2})
		}
		seed = seed*6364136223846793005 + 1442695040888963407
		at += 5*3600 + int64(seed>>40)%(6*3600)
	}
	return t, starts
}

// announceStarts announce eight GPUs ten minutes ahead.
func announceStarts(starts []int64, shift func(i int) int64) (records []evidence.Record) {
	for i, s := range starts {
		at := time.Unix(s+shift(i), 0)
		records = append(records, evidence.Record{
			Source: "test", Reason: "announced", Tenant: "lab", Sent: at.Add(-10 * time.Minute), Start: at, End: at,
			Low: 8, Mid: 8, High: 8, Probability: 0.9,
		})
	}
	return records
}

func replayEvidence(t *testing.T, trace backtest.Trace,
	records []evidence.Record) (with, without backtest.Outcome, s evidence.TrackRecord) {
	t.Helper()
	nothing := func(int) backtest.Policy { return backtest.AlwaysOn(trace.Jobs[0].Submit, 0) }
	without, err := backtest.Run(trace, backtest.Options{Boot: 300, Policy: nothing})
	require.NoError(t, err)
	book, err := evidence.New(lossBound(trace))
	require.NoError(t, err)
	terms := evidence.Terms{WaitPrice: 64, GPUPrice: 1, Boot: 300 * time.Second}
	with, err = backtest.Run(trace, backtest.Options{Boot: 300, Policy: func(tenant int) backtest.Policy {
		return newEvidencePolicy(nothing(tenant), book, terms, records)
	}})
	require.NoError(t, err)
	require.LessOrEqual(t, with.Longest, int64(300))
	return with, without, book.TrackRecord("test", "announced")
}

// exactShift is a source that is right to the second.
func exactShift(int) int64 { return 0 }

// wrongShift is a source that is off by hours.
func wrongShift(int) int64 { return 2 * 3600 }

// extraCost is what listening cost, in GPU-hours of idling and booting.
func extraCost(with, without backtest.Outcome) float64 {
	return with.IdleHours + with.BootHours - without.IdleHours - without.BootHours
}

func TestTrueMessagesSpareWaits(t *testing.T) {
	t.Parallel()
	trace, starts := sparseTrace(300)
	with, without, s := replayEvidence(t, trace, announceStarts(starts, exactShift))
	require.Greater(t, without.Mean, 200.0)
	require.Less(t, with.Mean, 10.0)
	require.Less(t, with.IdleShare()-without.IdleShare(), 12.0)
	require.True(t, s.Acting)
	require.Greater(t, s.Trust, 0.9)
}

// However often it lies, a source costs at most the bound that was stated.
func TestFalseMessagesCostAtMostTheBound(t *testing.T) {
	t.Parallel()
	trace, starts := sparseTrace(300)
	with, without, s := replayEvidence(t, trace, announceStarts(starts, wrongShift))
	require.InDelta(t, without.Mean, with.Mean, 1e-9)
	require.Less(t, s.Trust, 0.05)
	require.Positive(t, s.Spent)
	require.LessOrEqual(t, s.Spent, 2*lossBound(trace).Allowance)
	require.LessOrEqual(t, extraCost(with, without), lossShare*budgetShare*without.BusyHours)
}

// A source that turns bad after a hundred good messages is demoted within twenty,
// and the whole damage stays below 2 % of the budget of the time.
func TestASabotagedSourceCostsAtMostTheBound(t *testing.T) {
	t.Parallel()
	trace, starts := sparseTrace(300)
	sabotage := func(from int) (backtest.Outcome, evidence.TrackRecord) {
		records := announceStarts(starts, func(i int) int64 {
			if i >= from {
				return wrongShift(i)
			}
			return 0
		})
		with, _, s := replayEvidence(t, trace, records)
		return with, s
	}
	turned, s := sabotage(100)
	silent, _, _ := replayEvidence(t, trace, announceStarts(starts[:100], exactShift))
	require.False(t, s.Acting)
	require.Positive(t, extraCost(turned, silent))
	require.LessOrEqual(t, extraCost(turned, silent), lossShare*budgetShare*silent.BusyHours)
	require.InDelta(t, silent.Mean, turned.Mean, 1e-9)
	after, _ := sabotage(120)
	require.Less(t, after.Mean, turned.Mean, "twenty more good messages are worth something")
}

func TestMessagesBecomeRecords(t *testing.T) {
	t.Parallel()
	trace, _ := sparseTrace(50)
	messages := Messages(trace, 0.6, 0.5)
	require.NotEmpty(t, messages)
	for i, r := range recordsOf("lab", messages) {
		require.NoError(t, r.Check())
		require.Equal(t, messages[i].Start, r.Start.Unix())
		require.Equal(t, messages[i].Mid, r.Mid)
	}
	s := &scenario{trace: trace, boot: 300, messages: messages}
	run := func() backtest.Outcome {
		o, err := backtest.Run(trace, backtest.Options{Boot: 300, Policy: trustSettings(s)[4].policies()})
		require.NoError(t, err)
		return o
	}
	require.Equal(t, run(), run(), "a rerun gives the same numbers")
	require.Empty(t, trustSettings(&scenario{trace: trace, boot: 300}))
}
