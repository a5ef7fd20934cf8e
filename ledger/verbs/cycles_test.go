package verbs_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/scheduler"
	"github.com/forewarm/forewarm/ledger"
)

// replayer decides again whatever the ledgers of a world decide, from what is recorded, and fails its test where that
// differs.
type replayer struct {
	*testing.T
	mu  sync.Mutex
	all []scheduler.Record
}

// RecordCycles implements ledger.CycleRecorder.
func (p *replayer) RecordCycles(_ context.Context, r scheduler.Record) {
	text, err := r.Encode()
	if err != nil {
		p.Errorf("a record: %v", err)
		return
	}
	back, err := scheduler.DecodeRecord(text)
	if err != nil {
		p.Errorf("a record: %v", err)
		return
	}
	again, err := scheduler.Replay(back, back.Policy)
	if err != nil || again.Difference != "" {
		p.Errorf("replaying gives another decision: %s %v\n%s", again.Difference, err, text)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = append(p.all, back)
}

// What is refused by admission is in the record with what followed from it, so that it tells why another job started.
func TestALookIsRecordedWithWhatAdmissionRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann, bob := w.newSubmitter("ann"), w.newSubmitter("bob")
	w.warmNodes(4)
	soon := w.clock.Now().Add(30 * time.Minute)
	w.mustReserve(w.newPerson("eve"), 8, calendar.Interval{Start: soon, End: soon.Add(time.Hour)})
	long, alike := w.submit(ann, jobOf(1, nil)), w.submit(ann, jobOf(1, nil))
	short := w.submit(bob, jobOf(1, func(c *ledger.JobCommand) { c.Job.MaxRuntime = 10 * time.Minute }))
	w.cycles.all = nil
	require.NoError(t, w.ledger.ScheduleJobs(t.Context(), w.pool.ID))
	require.Equal(t, job.Scheduled, w.readJob(short.ID).State())
	require.Len(t, w.cycles.all, 1)
	r := w.cycles.all[0]
	require.Equal(t, "lab", r.Pool)
	require.Empty(t, r.Failed)
	require.GreaterOrEqual(t, len(r.Rounds), 2)
	refused := slices.Concat(r.Rounds[0].PutBack.Refused, r.Rounds[0].PutBack.LeftOut)
	require.Subset(t, []string{long.ID, alike.ID}, refused)
	require.NotEmpty(t, refused)
}

// What somebody only asks for is a record like any other, with everybody's jobs, and carries nothing out.
func TestWhatWouldBeDecidedNow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	decide := func() (r scheduler.Record) {
		w.read(func(reader ledger.Reader) (err error) {
			r, err = w.ledger.DecideNow(reader, w.pool.ID)
			return err
		})
		return r
	}
	require.Equal(t, "lab", decide().Pool, "also where nobody waits")
	ann := w.newSubmitter("ann")
	w.warmNodes(4)
	j := w.submit(ann, jobOf(1, nil))
	r := decide()
	require.True(t, r.DryRun)
	require.Equal(t, j.ID, r.Rounds[0].Starts[0].Job)
	require.Equal(t, job.Pending, w.readJob(j.ID).State())
	again, err := scheduler.Replay(r, r.Policy)
	require.NoError(t, err)
	require.Empty(t, again.Difference)
	require.Equal(t, j.ID, again.Order[0].ID)
}
