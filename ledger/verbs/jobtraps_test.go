package verbs_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger"
)

// Trap b of the seeds: a completion that is sent again changes nothing, whoever sends it, and neither does a
// late word on an attempt that was given up.
func TestTrapBCompletionsAreResent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	j := w.submit(ann, jobOf(1, func(c *ledger.JobCommand) { c.Job.Retries = job.Retries{Failed: 1} }))
	w.pass(boot)
	var first ledger.JobOrder
	var daemon ledger.Actor
	for _, d := range w.daemons() {
		daemon, first = d, w.orders(d)[0]
	}
	w.report(daemon, first, nil)
	for range 3 {
		require.Len(t, w.report(daemon, first, failedWith(3)), 1)
	}
	require.Equal(t, 1, w.readJob(j.ID).Failures, "one failure is one")
	w.pass(time.Minute)
	second := w.orders(daemon)[0]
	require.Equal(t, 2, second.Job.Attempt)
	require.Len(t, w.report(daemon, first, succeeded), 1, "the first attempt is over, whatever its daemon says later")
	require.Equal(t, job.Scheduled, w.readJob(j.ID).State())
	w.report(daemon, second, nil)
	for range 3 {
		require.Len(t, w.report(daemon, second, succeeded), 1)
	}
	done := w.readJob(j.ID)
	require.Equal(t, job.Completed, done.State())
	for range 3 {
		require.Len(t, w.report(daemon, second, failedWith(1)), 1)
		_, err := w.ledger.SettleNode(t.Context(), ledger.Actor{KeyID: "other", Kind: ledger.NodeKey, NodeID: daemon.NodeID},
			ledger.NodeReport{Jobs: []ledger.JobReport{{JobID: j.ID, Attempt: 2, Ended: true}}})
		require.ErrorIs(t, err, ledger.ErrDenied)
	}
	require.Equal(t, done, w.readJob(j.ID))
	require.Len(t, w.readEvents("job.completed"), 1)
	require.Equal(t, 0, w.takenGPUs())
}

// takenGPUs are those of allocations that live.
func (w *world) takenGPUs() (n int) {
	w.read(func(r ledger.Reader) error {
		p, err := r.Pool("lab")
		if err != nil {
			return err
		}
		all, err := r.Allocations(ledger.Scope{All: true}, ledger.BookingFilter{PoolID: p.ID, Live: true},
			ledger.Page{Limit: 100})
		for _, a := range all {
			n += a.Shape.GPUs()
		}
		return err
	})
	return n
}

// Trap d: the daemon of a job's node dies, and its machine does not. The job is tried again when its lease is
// over, elsewhere: its GPUs are nobody's until the node has shown that the work has ended.
func TestTrapDADaemonDies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	j := w.submit(w.newSubmitter("ann"), jobOf(2, nil))
	w.pass(boot)
	all := w.daemons()
	require.Len(t, all, 1)
	var lost ledger.JobOrder
	for _, daemon := range all {
		lost = w.orders(daemon)[0]
		w.report(daemon, lost, nil)
	}
	w.pass(time.Hour) // its time is over, and nobody says so
	require.Equal(t, job.Running, w.readJob(j.ID).State(), "it may be within its grace")
	require.Equal(t, allocation.Active, w.readAllocation(lost.Allocation.ID).State())
	w.pass(5 * time.Minute)
	is := w.readJob(j.ID)
	require.Equal(t, allocation.Expired, w.readAllocation(lost.Allocation.ID).State())
	require.Equal(t, 1, is.Losses)
	w.pass(boot + time.Minute)
	is = w.readJob(j.ID)
	require.Equal(t, 2, is.Attempt)
	for _, n := range w.readNodes(node.Ready) {
		if _, silent := all[n.ID]; silent {
			continue
		}
		daemon := w.lookAt(n.ID).daemon
		o := w.orders(daemon)[0]
		w.report(daemon, o, nil)
		w.report(daemon, o, succeeded)
	}
	for id, daemon := range all {
		_, err := w.ledger.SettleNode(t.Context(), daemon, ledger.NodeReport{Isolation: capacity.IsolationUser})
		require.ErrorIs(t, err, ledger.ErrDenied, "%s has not shown that it is clean, and is over", id)
	}
	require.Equal(t, job.Completed, w.readJob(j.ID).State())
}

// Trap k: lists are read while jobs are submitted, steered and run. Each is of one moment.
func TestTrapKListsUnderWriteLoad(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	const writers, each = 4, 15
	var writing, reading sync.WaitGroup
	over := make(chan struct{})
	for i := range writers {
		writing.Go(func() {
			for n := range each {
				all, err := w.ledger.SubmitJobs(t.Context(), ann, jobOf(1, func(c *ledger.JobCommand) {
					c.Job.Name, c.Indices = fmt.Sprintf("w%d-%d", i, n), []int{0, 1}
				}))
				if err == nil {
					_, err = w.ledger.CancelJob(t.Context(), ann, all[0].ID)
				}
				if err != nil {
					t.Errorf("writing: %v", err)
				}
			}
		})
	}
	for range 2 {
		reading.Go(func() {
			for seen := 0; ; {
				select {
				case <-over:
					return
				default:
				}
				n, err := w.countArrays()
				if err != nil || n < seen {
					t.Errorf("%d jobs were there, and then %d: %v", seen, n, err)
					return
				}
				seen = n
			}
		})
	}
	writing.Wait()
	close(over)
	reading.Wait()
	n, err := w.countArrays()
	require.NoError(t, err)
	require.Equal(t, 2*writers*each, n)
}

// countArrays counts all jobs in pages, of one moment, and fails where an array is not whole.
func (w *world) countArrays() (n int, err error) {
	arrays := map[string]int{}
	err = w.store.Read(w.Context(), func(r ledger.Reader) error {
		for page := (ledger.Page{Limit: 20}); ; {
			some, err := r.Jobs(ledger.Scope{All: true}, ledger.JobFilter{}, page)
			if err != nil {
				return err
			}
			for _, j := range some {
				arrays[j.Array.ID]++
			}
			if n += len(some); len(some) < page.Limit {
				return nil
			}
			page.After = some[len(some)-1].ID
		}
	})
	for id, of := range arrays {
		if of != 2 {
			return n, fmt.Errorf("array %s has %d jobs of 2", id, of)
		}
	}
	return n, err
}

// Bounds that surprise are told with what would do: before a job waits for what never comes.
func TestJobsThatCouldNeverDoWhatTheySay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	longest := w.pool.Timers.MaxLease
	refuse := func(change func(*job.Job)) *ledger.InvalidError {
		_, err := w.ledger.SubmitJobs(t.Context(), ann, jobOf(1, func(c *ledger.JobCommand) { change(&c.Job) }))
		refused, ok := errors.AsType[*ledger.InvalidError](err)
		require.True(t, ok, err)
		return refused
	}
	tooLong := refuse(func(j *job.Job) { j.MaxRuntime = longest })
	require.Equal(t, "max_runtime_seconds", tooLong.Field)
	fits := longest - 30*time.Second - 2*time.Minute
	require.Contains(t, tooLong.Rule, fmt.Sprintf("(%d s)", int64(fits/time.Second)))
	w.submit(ann, jobOf(1, func(c *ledger.JobCommand) { c.Job.MaxRuntime = fits }))
	late := refuse(func(j *job.Job) { j.Checkpoint = job.Checkpoint{Signal: "USR1", Before: time.Hour} })
	require.Equal(t, "checkpoint.before_seconds", late.Field)

	w.pass(boot + time.Minute)
	j := w.submit(ann, jobOf(1, nil))
	w.doDueWork()
	explain := func() ledger.Explanation {
		why, err := w.ledger.ExplainJob(t.Context(), ann, j.ID)
		require.NoError(t, err)
		return why
	}
	require.Equal(t, "no_daemon", explain().Blockers[0].Code)
	w.daemons()
	require.Empty(t, explain().Blockers)
}

// Whoever asks about a job that runs is told that nobody has heard of it for a while.
func TestASilentDaemonIsExplained(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	r := w.run(ann, jobOf(1, nil))
	explain := func() ledger.Explanation {
		why, err := w.ledger.ExplainJob(t.Context(), ann, r.ID)
		require.NoError(t, err)
		return why
	}
	require.Empty(t, explain().Blockers)
	w.silent = map[string]bool{r.daemons[0].NodeID: true}
	w.pass(3 * time.Minute)
	require.Equal(t, "silent_daemon", explain().Blockers[0].Code)
	require.Equal(t, []string{r.daemons[0].NodeID}, explain().Blockers[0].Evidence)
}

// Nobody waits on nodes that nobody would start a job on.
func TestAPoolWithoutDaemons(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	w.submit(ann, jobOf(1, nil))
	w.pass(boot + 11*time.Minute)
	_, err := w.ledger.SubmitJobs(t.Context(), ann, jobOf(1, nil))
	require.ErrorContains(t, err, "no daemon has ever joined")
	w.daemons()
	w.submit(ann, jobOf(1, nil))
}
