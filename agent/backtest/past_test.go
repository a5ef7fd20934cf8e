package backtest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/agent/history"
	core "github.com/forewarm/forewarm/core/backtest"
)

func TestHowLongAJobRan(t *testing.T) {
	t.Parallel()
	at := func(hours float64) time.Time { return monday.Add(time.Duration(hours * float64(time.Hour))) }
	end := at(10)
	for _, c := range []struct {
		name    string
		record  history.Record
		seconds int64
		counted Counts
	}{
		{"known", history.Record{Duration: 90 * time.Minute, State: history.Completed}, 5400, Counts{}},
		{"rounded", history.Record{Duration: 1600 * time.Millisecond}, 2, Counts{}},
		{"under a second", history.Record{Started: at(1), Ended: at(1), State: history.Failed}, 1, Counts{}},
		{"runs", history.Record{Submitted: at(1), Started: at(2), State: history.Running}, 8 * 3600,
			Counts{StillRuns: 1}},
		{"runs, since when is not known", history.Record{Submitted: at(1), State: history.Running}, 9 * 3600,
			Counts{StillRuns: 1}},
		{"began, and no more is known", history.Record{Submitted: at(1), Started: at(2), State: history.Unknown},
			8 * 3600, Counts{StillRuns: 1}},
		{"waits", history.Record{Submitted: at(1), State: history.Pending}, 0, Counts{NeverRan: 1}},
		{"was cancelled while it waited", history.Record{Ended: at(2), State: history.Cancelled}, 0,
			Counts{NeverRan: 1}},
		{"the same, as Slurm may say it", history.Record{Started: at(2), Ended: at(2), State: history.Cancelled}, 0,
			Counts{NeverRan: 1}},
		{"was cancelled while it ran", history.Record{Started: at(1), Ended: at(2), Duration: time.Hour,
			State: history.Cancelled}, 3600, Counts{}},
		{"ended, nobody knows when", history.Record{State: history.Completed}, 0, Counts{NoRunTime: 1}},
		{"too large", history.Record{GPUs: core.MaxGPUs + 1, Duration: time.Hour}, 0, Counts{TooLarge: 1}},
	} {
		var counts Counts
		seconds, ok := counts.runTime(c.record, end)
		require.Equal(t, c.seconds, seconds, c.name)
		require.Equal(t, c.seconds > 0, ok, c.name)
		require.Equal(t, c.counted, counts, c.name)
	}
}

func TestOnlyWhatWasAskedForCounts(t *testing.T) {
	t.Parallel()
	records := append(burstHistory(10), jobRecord(500, "other", 0, time.Hour, 1))
	p, err := prepareInput(Input{Records: records}, Config{Tenant: "lab", Days: 3}.WithDefaults())
	require.NoError(t, err)
	require.Equal(t, []string{"lab"}, p.trace.Tenants)
	last := p.trace.Jobs[len(p.trace.Jobs)-1].Submit
	require.LessOrEqual(t, last-p.trace.Jobs[0].Submit, int64(3*24*3600))
	require.EqualValues(t, len(records)-len(p.trace.Jobs), p.counts.Elsewhere)
	_, err = prepareInput(Input{Records: records}, Config{Tenant: "nobody"}.WithDefaults())
	require.EqualError(t, err, `the history has no job of "nobody", but of lab, other`)
}

func TestARowWithAWrongDateIsNoticed(t *testing.T) {
	t.Parallel()
	records := burstHistory(30)
	r, err := Run(t.Context(), Input{Records: records}, Config{})
	require.NoError(t, err)
	require.Nil(t, r.History.Silence)
	records = append(records, jobRecord(900, "lab", -300*24*time.Hour, time.Hour, 1))
	r, err = Run(t.Context(), Input{Records: records}, Config{})
	require.NoError(t, err)
	require.Equal(t, &Silence{From: monday.Add(-300 * 24 * time.Hour), To: monday}, r.History.Silence)
}

func TestTheEndIsNotWhenAWaitingJobMayStart(t *testing.T) {
	t.Parallel()
	waits := history.Record{Submitted: monday, Started: monday.Add(time.Hour), State: history.Pending}
	require.Equal(t, monday, endOf([]history.Record{waits}))
	waits.State = history.Running
	require.Equal(t, monday.Add(time.Hour), endOf([]history.Record{waits}))
}

func TestOfSeveralRowsOfAJobTheOneThatTellsMostCounts(t *testing.T) {
	t.Parallel()
	running, ended := jobRecord(1, "lab", 0, time.Hour, 2), jobRecord(1, "lab", 0, time.Hour, 2)
	running.Ended, running.Duration, running.State = time.Time{}, 0, history.Running
	for _, records := range [][]history.Record{{running, ended}, {ended, running}} {
		require.Equal(t, []history.Record{ended}, keepLatest(records))
	}
}

// A fixed schedule keeps what was enough for nine tenths of the opening hours.
func TestScheduleLevels(t *testing.T) {
	t.Parallel()
	hours := core.Hours{Open: 9, Close: 18, Zone: time.UTC}
	at := func(day, hour int) int64 { return monday.Add(time.Duration(24*day+hour) * time.Hour).Unix() }
	jobs := []core.Job{
		{Submit: at(0, 9), Duration: 9 * 3600, GPUs: 2}, // all of Monday
		{Submit: at(0, 17), Duration: 1800, GPUs: 8},    // the last hour's first half
		{Submit: at(0, 20), Duration: 3600, GPUs: 64},   // in the evening
		{Submit: at(20, 0), Duration: 1, GPUs: 1},
	}
	// The warm-up ends on Sunday morning: one working week, Monday of which had 2.
	require.Equal(t, []int{2}, scheduleLevels(core.Trace{Tenants: []string{"lab"}, Jobs: jobs}, hours),
		"8.5 of 45 hours had 2, half an hour had 10, the rest none")
	require.Len(t, openSpans(at(0, 0), at(7, 0), hours), 5)
	require.Equal(t, []span{{at(0, 12), at(0, 18)}, {at(1, 9), at(1, 10)}}, openSpans(at(0, 12), at(1, 10), hours))
	require.Zero(t, smallestLevel(nil, nil))
}

func TestRealWaitsAreThoseThatAreKnown(t *testing.T) {
	t.Parallel()
	records := burstHistory(10)
	for i := range records {
		switch i % 4 {
		case 0:
			records[i].Started = time.Time{}
		case 1:
			records[i].Started = records[i].Submitted.Add(30 * time.Second)
		case 2:
			records[i].Started = records[i].Submitted.Add(time.Hour)
		}
	}
	r, err := Run(t.Context(), Input{Records: records}, Config{})
	require.NoError(t, err)
	row := r.Policies[0]
	require.Equal(t, Happened, row.Policy)
	require.Equal(t, r.History.Scored*3/4, row.Jobs)
	require.Contains(t, row.Label, "jobs)")
	require.InDelta(t, 66.7, *row.ZeroWait, 1, "a wait of half a minute is none")
	require.InDelta(t, 3600, *row.P95, 1e-9)
	require.InDelta(t, (30+3600)/3, *row.Mean, 60)

	for i := range records {
		records[i].Started = time.Time{}
	}
	r, err = Run(t.Context(), Input{Records: records}, Config{})
	require.NoError(t, err)
	require.Equal(t, Row{Policy: Happened, Label: "what happened"}, r.Policies[0])
}

func TestWhatIsKnownOfJobsIsReplayed(t *testing.T) {
	t.Parallel()
	failed := jobRecord(1, "lab", 0, time.Hour, 1)
	failed.Class, failed.Array, failed.State = 3, 4, history.TimedOut
	p, err := prepareInput(Input{Records: []history.Record{failed}}, Config{}.WithDefaults())
	require.NoError(t, err)
	require.Equal(t, core.Traits{Class: 3, Array: 4, Failed: true}, p.trace.Jobs[0].Traits)
}

// A row of a wrong year is left out, counted and told; the history ends with its last good row.
func TestRowsAfterNowAreLeftOut(t *testing.T) {
	t.Parallel()
	good := burstHistory(10)
	now := endOf(good)
	const year = 75 * 365 * 24 * time.Hour
	wrong := []history.Record{
		jobRecord(901, "lab", year+time.Hour, time.Hour, 1), jobRecord(902, "lab", year, time.Hour, 1),
	}
	ends := jobRecord(903, "lab", 1, time.Hour, 1)
	ends.State, ends.Ended = history.Completed, now.Add(30*24*time.Hour)
	input := Input{Records: append(append(good, wrong...), ends, jobRecord(904, "lab", now.Sub(monday)+20*time.Hour,
		time.Hour, 1))}
	p, err := prepareInput(input, Config{Days: 3, Now: now}.WithDefaults())
	require.NoError(t, err)
	require.EqualValues(t, 3, p.counts.Future)
	require.Equal(t, ends.Submitted, p.future)
	last := p.trace.Jobs[len(p.trace.Jobs)-1].Submit
	require.Equal(t, now.Add(20*time.Hour).Unix(), last, "a day is tolerated")
	require.Greater(t, len(p.trace.Jobs), 10, "the last days are those of the good rows")
	_, err = prepareInput(Input{Records: wrong}, Config{Now: now}.WithDefaults())
	require.ErrorContains(t, err, "is a clock wrong?")
}
