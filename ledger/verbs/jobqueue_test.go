package verbs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
)

// queueOf is who waits, as a ledger sees it.
func (w *world) queueOf(l *verbs.Ledger) (all []ledger.QueuedJob) {
	w.Helper()
	w.read(func(r ledger.Reader) (err error) {
		all, err = l.QueueOf(r, w.pool.ID)
		return err
	})
	return all
}

// What a ledger remembers of a queue is what one reads that remembers nothing, whatever has happened.
func TestTheQueueIsNeverStale(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	var ids []string
	long := func(c *ledger.JobCommand) { c.Job.MaxRuntime = 10 * time.Hour }
	last := func() string { all := w.queueOf(w.ledger); return all[len(all)-1].ID }
	for n, step := range []func(){
		func() { ids = append(ids, w.submit(ann, jobOf(8, long)).ID) },
		func() {
			for range 5 {
				ids = append(ids, w.submit(ann, jobOf(2, long)).ID)
			}
		},
		func() { w.pass(boot) },
		func() { w.mustHold(ann, last()) },
		func() { w.mustCancel(ann, last()) },
		func() { w.submitArray(ann, 2, long, 1, 2, 3, 4) },
		func() { w.mustCancel(ann, ids[0]) },
		func() { w.pass(time.Minute) },
	} {
		step()
		require.Equal(t, w.queueOf(w.restartedLedger()), w.queueOf(w.ledger), "after step %d", n)
	}
	require.NotEmpty(t, w.queueOf(w.ledger))
}

func (w *world) mustHold(who ledger.Actor, id string) {
	w.Helper()
	_, err := w.ledger.HoldJob(w.Context(), who, id)
	require.NoError(w, err)
}

func (w *world) mustCancel(who ledger.Actor, id string) {
	w.Helper()
	_, err := w.ledger.CancelJob(w.Context(), who, id)
	require.NoError(w, err)
}
