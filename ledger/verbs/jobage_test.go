package verbs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/ledger"
)

func (w *world) idsOfQueue() (ids []string) {
	w.Helper()
	for _, j := range w.queueOf(w.ledger) {
		ids = append(ids, j.ID)
	}
	return ids
}

func (w *world) mustRelease(who ledger.Actor, id string) {
	w.Helper()
	_, err := w.ledger.ReleaseJob(w.Context(), who, id)
	require.NoError(w, err)
}

func (w *world) mustDelay(who ledger.Actor, id string, until time.Time) {
	w.Helper()
	_, err := w.ledger.EditJob(w.Context(), who, id, w.readJob(id).Version, ledger.JobEdit{NotBefore: &until})
	require.NoError(w, err)
}

// A small job that could not run for twenty hours comes behind a large one that has waited for ten, whatever kept
// it: a hold, a time, or another job.
func TestWhoCouldNotRunHasNotWaited(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(w *world, first job.Job, c *ledger.JobCommand)
		begin  func(w *world, who ledger.Actor, id string)
		end    func(w *world, who ledger.Actor, first job.Job, id string)
	}{
		"held": {
			change: func(_ *world, _ job.Job, c *ledger.JobCommand) { c.Held = true },
			end:    func(w *world, who ledger.Actor, _ job.Job, id string) { w.mustRelease(who, id) },
		},
		"held again": {
			begin: func(w *world, who ledger.Actor, id string) {
				w.mustHold(who, id)
				w.mustRelease(who, id)
				w.mustHold(who, id)
			},
			end: func(w *world, who ledger.Actor, _ job.Job, id string) { w.mustRelease(who, id) },
		},
		"its time": {
			change: func(w *world, _ job.Job, c *ledger.JobCommand) {
				c.Job.NotBefore = w.clock.Now().Add(20*time.Hour - boot)
			},
		},
		"put off": {
			begin: func(w *world, who ledger.Actor, id string) { w.mustDelay(who, id, w.clock.Now().Add(99*time.Hour)) },
			end:   func(w *world, who ledger.Actor, _ job.Job, id string) { w.mustDelay(who, id, time.Time{}) },
		},
		"another job": {
			change: func(_ *world, first job.Job, c *ledger.JobCommand) {
				c.Job.Dependencies = []job.Depends{{JobID: first.ID, Condition: job.AfterAny}}
			},
			end: func(w *world, who ledger.Actor, first job.Job, _ string) { w.mustCancel(who, first.ID) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			ann := w.newSubmitter("ann")
			w.run(ann, jobOf(8, func(c *ledger.JobCommand) { c.Job.MaxRuntime = 23 * time.Hour }))
			first := w.submit(ann, jobOf(8, func(c *ledger.JobCommand) { c.Held = true }))
			small := w.submit(ann, jobOf(1, func(made *ledger.JobCommand) {
				if c.change != nil {
					c.change(w, first, made)
				}
			}))
			if c.begin != nil {
				c.begin(w, ann, small.ID)
			}
			w.pass(10 * time.Hour)
			large := w.submit(ann, jobOf(8, nil))
			w.pass(10*time.Hour - boot)
			if c.end != nil {
				c.end(w, ann, first, small.ID)
			}
			w.doDueWork()
			require.Equal(t, []string{large.ID, small.ID}, w.idsOfQueue())
			require.False(t, w.readJob(small.ID).EligibleAt.Before(large.SubmittedAt.Add(10*time.Hour-boot)), "which is kept")
		})
	}
}
