package predict

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/forecast"
)

func openLedger(t testing.TB, path string) *Ledger {
	l, err := OpenLedger(path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Release() })
	return l
}

func testEntries(t testing.TB) []Entry {
	p := newPredictor(t, nil)
	teachHistory(t, p)
	prediction := p.Predict(now, tenantName, Answer{})
	return []Entry{prediction.Entry(0), prediction.Entry(1)}
}

func TestLedgerScoresWhatHappened(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "forecasts.jsonl")
	l, want := openLedger(t, path), testEntries(t)
	require.NoError(t, l.Append(want...))
	require.NoError(t, l.Append(want...), "twice is once")
	require.Equal(t, want, l.open)

	outcomes, err := l.Close(want[0].End.Add(-time.Second), func(Entry) int { return 1 })
	require.NoError(t, err)
	require.Empty(t, outcomes, "no window has ended")
	outcomes, err = l.Close(want[0].End, func(e Entry) int {
		require.Equal(t, want[0], e)
		return 24
	})
	require.NoError(t, err)
	require.Len(t, outcomes, 1)
	require.Equal(t, want[0].Forecast.Evaluate(24), outcomes[0].Score)
	require.Equal(t, want[1:], l.open)
	require.Equal(t, int64(1), l.Summary().Statistics.N)
	require.Equal(t, forecast.Scorer{}, l.Summary().LLM)

	again := openLedger(t, path)
	require.Equal(t, want[1:], again.open, "a restart forgets nothing")
	require.Equal(t, l.Summary().Statistics, again.Summary().Statistics)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

func TestLedgerSurvivesACrashInTheMiddleOfALine(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "forecasts.jsonl")
	want := testEntries(t)
	require.NoError(t, openLedger(t, path).Append(want...))
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, whole[:len(whole)-7], 0o600))
	l := openLedger(t, path)
	require.Equal(t, want[:1], l.open)
	require.NoError(t, l.Append(want...))
	repaired, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(whole), string(repaired))
}

func TestLedgerNamesTheLineItCannotRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "forecasts.jsonl")
	require.NoError(t, os.WriteFile(path, []byte("{}\nnonsense\n"), 0o600))
	_, err := OpenLedger(path)
	require.ErrorContains(t, err, "line 2")
	_, err = OpenLedger(dir)
	require.Error(t, err)
}
