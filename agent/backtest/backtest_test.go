package backtest

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/agent/history"
)

// monday is the first second of the histories.
var monday = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)

// jobRecord is a job that ran at once.
func jobRecord(n int, tenant string, after, took time.Duration, gpus int) history.Record {
	at := monday.Add(after)
	return history.Record{
		ID: fmt.Sprintf("job-%04d", n), Tenant: tenant, Submitted: at, Started: at, Ended: at.Add(took),
		Duration: took, GPUs: gpus, State: history.Completed,
	}
}

// burstHistory is a history of jobs in a row, a few minutes apart, at other hours every
// day: what a short keep-alive is good for.
func burstHistory(days int) []history.Record {
	var records []history.Record
	for day := range days {
		begin := time.Duration(24*day+(day*7)%20) * time.Hour
		for i := range 12 {
			records = append(records, jobRecord(len(records), "lab", begin+time.Duration(i)*7*time.Minute,
				5*time.Minute, 2))
		}
	}
	return records
}

// rareHistory is a history of single jobs that nothing foretells.
func rareHistory(days int) []history.Record {
	var records []history.Record
	for day := range days {
		begin := time.Duration(24*day+(day*11)%24)*time.Hour + time.Duration(day*17%60)*time.Minute
		records = append(records, jobRecord(day, "lab", begin, time.Hour, 8))
	}
	return records
}

func TestTheAdviceIsTheSimplerRuleWhereItWins(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		records []history.Record
		worth   float64
		use     string
		text    string
	}{
		{"jobs in a row", burstHistory(30), 32, KeepAlive, "Set it up: forewarm pools edit POOL --idle-release 2m"},
		{"nothing to foretell", rareHistory(60), 8, Reactive, "keep nothing warm"},
		{"few jobs and days", burstHistory(2), 32, NotKnown,
			"too short, with too few jobs: the jobs after the warm-up cover"},
		{"few jobs", rareHistory(20), 32, NotKnown, "too few jobs: 14 jobs after the warm-up, and it takes 20"},
		{"few days", slicesOf(burstHistory(1), 60), 32, NotKnown, "too short: the jobs after the warm-up cover"},
	} {
		r, err := Run(t.Context(), Input{Records: c.records}, Config{WaitWorth: c.worth})
		require.NoError(t, err, c.name)
		require.Equal(t, c.use, r.Advice.Use, "%s: %v", c.name, r.Advice.Text)
		require.Contains(t, strings.Join(r.Advice.Text, "\n"), c.text, c.name)
		require.Equal(t, c.use == NotKnown, r.BreakEven == nil, c.name)
	}
}

// slicesOf repeats a history of one day within a second day.
func slicesOf(records []history.Record, n int) []history.Record {
	var all []history.Record
	for i := range n {
		r := records[i%len(records)]
		r.ID = fmt.Sprintf("again-%04d", i)
		r.Submitted = r.Submitted.Add(time.Duration(i) * 10 * time.Minute)
		r.Started = r.Submitted
		r.Ended = r.Started.Add(r.Duration)
		all = append(all, r)
	}
	return all
}

func TestTheOrderOfRowsChangesNothing(t *testing.T) {
	t.Parallel()
	records := burstHistory(6)
	again := records[40]
	again.Ended, again.Duration, again.State = time.Time{}, 0, history.Running
	records = append(records, again, jobRecord(900, "other", 30*time.Hour, time.Hour, 1),
		jobRecord(901, "other", 30*time.Hour, time.Hour, 4))
	first, err := Run(t.Context(), Input{Records: records}, Config{})
	require.NoError(t, err)
	require.EqualValues(t, 1, first.History.Rows.Repeated)
	rapid.Check(t, func(t *rapid.T) {
		shuffled := append([]history.Record(nil), records...)
		seed := rapid.Uint64().Draw(t, "seed")
		rand.New(rand.NewPCG(seed, 1)).Shuffle(len(shuffled),
			func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		p, err := prepareInput(Input{Records: shuffled}, Config{}.WithDefaults())
		require.NoError(t, err)
		want, err := prepareInput(Input{Records: records}, Config{}.WithDefaults())
		require.NoError(t, err)
		require.Equal(t, want, p)
		if seed%16 != 0 { // a whole replay takes long
			return
		}
		r, err := Run(context.Background(), Input{Records: shuffled}, Config{})
		require.NoError(t, err)
		require.Equal(t, first, r)
	})
}

// quickHistory is a history of jobs that are over long before a machine has booted: sessions of two and four
// GPUs by turns.
func quickHistory(days int) []history.Record {
	var records []history.Record
	for at := time.Duration(0); at < time.Duration(days)*24*time.Hour; at += time.Duration(60+
		len(records)*37%140) * time.Second {
		records = append(records, jobRecord(len(records), "lab", at, 14*time.Second, 2+2*(len(records)%2)))
	}
	return records
}

// Who pays more for waiting waits less, also where boots that are under way tempt to let go of what is ready.
func TestDearerWaitingIsLessWaiting(t *testing.T) {
	t.Parallel()
	before := 0.0
	for _, worth := range []float64{16, 256, 4096} {
		r, err := Run(t.Context(), Input{Records: quickHistory(4)}, Config{WaitWorth: worth})
		require.NoError(t, err)
		for _, p := range r.Policies {
			if p.Policy == Forewarm {
				require.GreaterOrEqual(t, *p.ZeroWait, before, "at %v", worth)
				before = *p.ZeroWait
			}
		}
	}
	require.Greater(t, before, 95.0)
}

func TestEveryRowSaysWhatItSaves(t *testing.T) {
	t.Parallel()
	r, err := Run(t.Context(), Input{Records: burstHistory(30)}, Config{GPUPrice: 2})
	require.NoError(t, err)
	rows := map[string]Row{}
	for _, p := range r.Policies {
		rows[p.Policy] = p
	}
	require.Len(t, rows, 7)
	require.InDelta(t, 180, *rows[Reactive].Mean, 1e-9,
		"a third of them each: a boot, three minutes or one until the job before has ended")
	require.Zero(t, *rows[Reactive].Saved)
	require.Zero(t, *rows[Foresight].Mean)
	require.InDelta(t, 100, *rows[Foresight].GapClosed, 1e-9)
	require.InDelta(t, *rows[Reactive].WaitHours, *rows[Foresight].Saved, 1e-9)
	for _, policy := range []string{Reactive, Schedule, KeepAlive, LastWeek, Forewarm, Foresight} {
		p := rows[policy]
		require.InDelta(t, *p.IdleHours+*p.BootHours, *p.Waste, 1e-3, policy)
		require.InDelta(t, 2**p.Waste, *p.WasteUSD, 1e-3, policy)
		require.InDelta(t, 32**p.WaitHours+*p.Waste, *p.Cost, 1e-2, policy)
		require.GreaterOrEqual(t, *p.Cost, *rows[Foresight].Cost, policy)
		require.Equal(t, r.History.Scored, p.Jobs)
	}
	require.InDelta(t, 100, *rows[Happened].ZeroWait, 1e-9)
	require.Nil(t, rows[Happened].Cost)
}

func TestWhatRemainsAddsUp(t *testing.T) {
	t.Parallel()
	r, err := Run(t.Context(), Input{Records: burstHistory(30)}, Config{})
	require.NoError(t, err)
	jobs, hours := 0, 0.0
	for _, day := range r.Week {
		for _, h := range day {
			jobs += h.Jobs
			hours += h.WaitHours
		}
	}
	require.Equal(t, r.History.Scored, jobs)
	for _, p := range r.Policies {
		if p.Policy == Forewarm {
			require.InDelta(t, *p.WaitHours, hours, 0.02)
		}
	}
	require.Equal(t, "2 GPUs", r.WeakSpots[len(r.WeakSpots)-1].Label)
	require.InDelta(t, 100, r.WeakSpots[len(r.WeakSpots)-1].Share, 1e-9)
}

func TestARunStopsWhenItIsToldTo(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	told := 0.0
	_, err := Run(ctx, Input{Records: burstHistory(30)}, Config{Progress: func(share float64) {
		require.GreaterOrEqual(t, share, told)
		if told = share; share > 0.2 {
			stop()
		}
	}})
	require.ErrorIs(t, err, context.Canceled)
	require.Less(t, told, 0.9)
}

func TestAConfigThatCannotBe(t *testing.T) {
	t.Parallel()
	for _, c := range []Config{
		{WaitWorth: -1}, {WaitWorth: 1e9}, {GPUPrice: -1}, {Boot: time.Millisecond}, {Boot: 48 * time.Hour}, {Days: -1},
	} {
		_, err := Run(t.Context(), Input{Records: burstHistory(3)}, c)
		require.Error(t, err, "%+v", c)
	}
	_, err := Run(t.Context(), Input{}, Config{})
	require.ErrorIs(t, err, ErrNoJobs)
}

func TestReadTellsTheFormatFromTheFirstBytes(t *testing.T) {
	t.Parallel()
	csv := "job_id,submit_ts,gpus,duration_s\na,1504521041,1,60\n"
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err := z.Write([]byte(csv))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	for _, c := range []struct {
		text   string
		format Format
	}{
		{csv, CSV},
		{"\xef\xbb\xbf" + csv, CSV},
		{packed.String(), CSV},
		{`{"job_id":"a","submit_ts":1504521041,"gpus":1}`, JSONL},
		{"JobID|Submit|AllocTRES|JobName|\n1|2026-03-02T08:00:00|gres/gpu=1|x|\n", Sacct},
		{`{"apiVersion":"v1","kind":"List","items":[{"kind":"Pod",` +
			`"metadata":{"uid":"u1","creationTimestamp":"2026-03-02T08:00:00Z"},` +
			`"spec":{"containers":[{"resources":{"limits":{"nvidia.com/gpu":"1"}}}]}}]}`, Kubernetes},
	} {
		in, err := Read(t.Context(), strings.NewReader(c.text), Auto, history.Options{})
		require.NoError(t, err, c.text)
		require.Equal(t, c.format, in.Format)
		require.Len(t, in.Records, 1, c.text)
	}
	_, err = Read(t.Context(), strings.NewReader(csv), "parquet", history.Options{})
	require.ErrorContains(t, err, "parquet")
	var header *history.HeaderError
	_, err = Read(t.Context(), strings.NewReader("hello\nworld\n"), Auto, history.Options{})
	require.ErrorAs(t, err, &header)
	stopped, stop := context.WithCancel(t.Context())
	stop()
	_, err = Read(stopped, strings.NewReader(csv), Auto, history.Options{})
	require.True(t, errors.Is(err, context.Canceled))
}
