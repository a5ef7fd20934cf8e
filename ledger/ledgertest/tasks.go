package ledgertest

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/ledger"
)

// Leases and windows that are over, or far from over, whatever the database's clock
// says.
const (
	long  = time.Hour
	ended = -time.Second
)

func readTask(w *world, id string) ledger.Task {
	w.Helper()
	return readValue(w, func(r ledger.Reader) (ledger.Task, error) { return r.Task(id) })
}

func claimTask(w *world, id string, attempt int, lease time.Duration) (claimed ledger.Task, err error) {
	err = w.inTx(func(tx ledger.Tx) (err error) {
		claimed, err = tx.ClaimTask(id, attempt, lease)
		return err
	})
	return claimed, err
}

func mustClaim(w *world, id string, attempt int) ledger.Guard {
	w.Helper()
	t, err := claimTask(w, id, attempt, long)
	require.NoError(w, err)
	return ledger.Guard{TaskID: id, Fence: t.Fence}
}

func finishTask(w *world, g ledger.Guard, next time.Time, failure string) error {
	return w.save(ledger.Change{Finished: []ledger.FinishedRun{{Guard: g, Next: next, Failure: failure}}})
}

func wakeTask(w *world, key string, at time.Time) {
	w.Helper()
	require.NoError(w, w.inTx(func(tx ledger.Tx) error { return tx.Wake(key, at) }))
}

func dispatchTasks(w *world, limit int, window time.Duration) []ledger.Task {
	w.Helper()
	var sent []ledger.Task
	require.NoError(w, w.inTx(func(tx ledger.Tx) (err error) {
		sent, err = tx.Dispatch(limit, window)
		return err
	}))
	return sent
}

func taskIDs(tasks []ledger.Task) []string {
	return namesOf(tasks, func(t ledger.Task) string { return t.ID })
}

func pendingTask(w *world) bool {
	w.Helper()
	return readValue(w, func(r ledger.Reader) (bool, error) { return r.Pending(ledger.TaskCheckNode, "nod_1") })
}

func aTaskRunsOnce(w *world) {
	now := w.now()
	require.False(w, pendingTask(w))
	w.mustSave(ledger.Change{Tasks: []ledger.Task{newTask("tsk_1", now), newTask("tsk_2", now.Add(long))}})
	want := newTask("tsk_1", now)
	require.Equal(w, want, readTask(w, "tsk_1"))
	sent := dispatchTasks(w, 10, long)
	want.Dispatches = 1
	require.Equal(w, []ledger.Task{want}, sent, "only what is due is sent")
	require.Empty(w, dispatchTasks(w, 10, long), "and not twice within the window")

	running, err := claimTask(w, "tsk_1", 0, long)
	require.NoError(w, err)
	require.Equal(w, ledger.TaskRunning, running.State)
	require.True(w, running.LeaseUntil.After(now))
	guard := ledger.Guard{TaskID: "tsk_1", Fence: running.Fence}
	require.NoError(w, w.inTx(func(tx ledger.Tx) error { return tx.Extend(guard, 2*long) }))
	require.True(w, readTask(w, "tsk_1").LeaseUntil.After(running.LeaseUntil))

	require.NoError(w, finishTask(w, guard, now.Add(long), "not yet"))
	again := readTask(w, "tsk_1")
	require.Equal(w, ledger.TaskReady, again.State)
	require.Equal(w, now.Add(long), again.RunAt)
	require.Equal(w, 1, again.Attempt)
	require.Equal(w, "not yet", again.LastError)
	_, err = claimTask(w, "tsk_1", 0, long)
	require.ErrorIs(w, err, ledger.ErrFenced, "the first attempt was delivered late")

	require.True(w, pendingTask(w))
	require.NoError(w, finishTask(w, mustClaim(w, "tsk_1", 1), time.Time{}, ""))
	require.NoError(w, finishTask(w, mustClaim(w, "tsk_2", 0), time.Time{}, ""))
	require.False(w, pendingTask(w))
	require.Equal(w, ledger.TaskDone, readTask(w, "tsk_1").State)
	counts := readValue(w, func(r ledger.Reader) (map[ledger.TaskState]int, error) { return r.Tasks() })
	require.Equal(w, map[ledger.TaskState]int{ledger.TaskDone: 2}, counts)
	require.Empty(w, dispatchTasks(w, 10, long))
}

// keyedTask returns a row that runs again and again.
func keyedTask(id, key string, at time.Time) ledger.Task {
	t := newTask(id, at)
	t.Key = key
	return t
}

func aKeyedTaskRunsAgain(w *world) {
	now := w.now()
	w.mustSave(ledger.Change{Tasks: []ledger.Task{keyedTask("tsk_1", "plan:pol_1", now)}})
	require.NoError(w, finishTask(w, mustClaim(w, "tsk_1", 0), now.Add(long), ""))
	require.Equal(w, now.Add(long), readTask(w, "tsk_1").RunAt)
	require.NoError(w, finishTask(w, mustClaim(w, "tsk_1", 1), time.Time{}, ""))
	asleep := readTask(w, "tsk_1")
	require.Equal(w, ledger.TaskReady, asleep.State, "it is never done")
	require.Equal(w, 2, asleep.Attempt)
	require.Empty(w, dispatchTasks(w, 10, ended), "without a next time it waits to be woken")
	require.True(w, readValue(w, func(r ledger.Reader) (time.Time, error) { return r.NextTask() }).IsZero())
	wakeTask(w, "plan:pol_1", now)
	require.Equal(w, []string{"tsk_1"}, taskIDs(dispatchTasks(w, 10, ended)))
}

func aKeyedTaskExistsOnce(w *world) {
	now := w.now()
	w.mustSave(ledger.Change{Tasks: []ledger.Task{keyedTask("tsk_1", "plan:pol_1", now)}})
	w.mustSave(ledger.Change{Tasks: []ledger.Task{keyedTask("tsk_2", "plan:pol_1", now.Add(-long)),
		keyedTask("tsk_3", "plan:pol_2", now)}})
	require.Equal(w, keyedTask("tsk_1", "plan:pol_1", now), readTask(w, "tsk_1"))
	require.Equal(w, keyedTask("tsk_3", "plan:pol_2", now), readTask(w, "tsk_3"))
	require.ErrorIs(w, w.save(ledger.Change{Tasks: []ledger.Task{newTask("tsk_1", now)}}), ledger.ErrTaken)
	w.mustSave(ledger.Change{Tasks: []ledger.Task{newTask("tsk_4", now), newTask("tsk_5", now)}}) // no key is no name
}

func wakingPullsForward(w *world) {
	now := w.now()
	w.mustSave(ledger.Change{Tasks: []ledger.Task{keyedTask("tsk_1", "k", now.Add(2*long)),
		keyedTask("tsk_2", "other", now.Add(2*long))}})
	for _, c := range []struct{ at, want time.Time }{
		{now.Add(3 * long), now.Add(2 * long)},
		{now.Add(long), now.Add(long)},
		{time.Time{}, now.Add(long)}, // never
		{now.Add(-long), now.Add(-long)},
	} {
		wakeTask(w, "k", c.at)
		require.Equal(w, c.want, readTask(w, "tsk_1").RunAt)
	}
	require.Equal(w, now.Add(2*long), readTask(w, "tsk_2").RunAt)

	guard := mustClaim(w, "tsk_1", 0)
	for _, c := range []struct{ at, want time.Time }{
		{now.Add(2 * long), now.Add(2 * long)},
		{now.Add(long), now.Add(long)},
		{now.Add(3 * long), now.Add(long)},
	} {
		wakeTask(w, "k", c.at)
		require.Equal(w, c.want, readTask(w, "tsk_1").WakeAt)
	}
	require.NoError(w, finishTask(w, guard, now.Add(5*long), ""))
	woken := readTask(w, "tsk_1")
	require.Equal(w, now.Add(long), woken.RunAt, "being woken while it ran is not forgotten")
	require.True(w, woken.WakeAt.IsZero())

	guard = mustClaim(w, "tsk_1", 1)
	wakeTask(w, "k", now.Add(2*long))
	require.NoError(w, finishTask(w, guard, now.Add(long), ""))
	require.Equal(w, now.Add(long), readTask(w, "tsk_1").RunAt)

	guard = mustClaim(w, "tsk_1", 2)
	wakeTask(w, "k", now)
	require.NoError(w, finishTask(w, guard, time.Time{}, ""))
	require.Equal(w, now, readTask(w, "tsk_1").RunAt)

	require.Equal(w, []string{"tsk_1"}, taskIDs(dispatchTasks(w, 10, long)))
	wakeTask(w, "k", now.Add(-long))
	require.Equal(w, []string{"tsk_1"}, taskIDs(dispatchTasks(w, 10, long)), "moved forward, it is sent at once")
}

func aDeadWorkersTaskIsGivenAway(w *world) {
	now := w.now()
	reap := func() (n int) {
		require.NoError(w, w.inTx(func(tx ledger.Tx) (err error) {
			n, err = tx.Reap()
			return err
		}))
		return n
	}
	w.mustSave(ledger.Change{Tasks: []ledger.Task{newTask("tsk_1", now), newTask("tsk_2", now)}})
	require.Len(w, dispatchTasks(w, 10, long), 2)
	dead, err := claimTask(w, "tsk_1", 0, ended)
	require.NoError(w, err)
	alive := mustClaim(w, "tsk_2", 0)
	require.Equal(w, 1, reap())
	require.Equal(w, 0, reap())
	given := readTask(w, "tsk_1")
	require.Equal(w, ledger.TaskReady, given.State)
	require.Equal(w, 1, given.Attempt)
	require.NotEmpty(w, given.LastError)
	require.Equal(w, []string{"tsk_1"}, taskIDs(dispatchTasks(w, 10, long)), "its old window does not hold it back")
	void := ledger.Guard{TaskID: "tsk_1", Fence: dead.Fence}
	require.ErrorIs(w, finishTask(w, void, time.Time{}, ""), ledger.ErrFenced)
	require.NoError(w, finishTask(w, alive, time.Time{}, ""))
}

// aStaleWorkerIsFenced: what a worker did under a void guard is not committed, even
// if the worker ignores the error.
func aStaleWorkerIsFenced(w *world) {
	now := w.now()
	w.mustSave(ledger.Change{Tasks: []ledger.Task{newTask("tsk_1", now)}})
	old, err := claimTask(w, "tsk_1", 0, ended)
	require.NoError(w, err)
	stale := ledger.Guard{TaskID: "tsk_1", Fence: old.Fence}
	require.NoError(w, w.inTx(func(tx ledger.Tx) error { _, err := tx.Reap(); return err }))
	guard := mustClaim(w, "tsk_1", 1)
	require.Greater(w, guard.Fence, stale.Fence)
	for name, report := range map[string]func(tx ledger.Tx) error{
		"finish": func(tx ledger.Tx) error {
			return tx.Save(ledger.Change{Finished: []ledger.FinishedRun{{Guard: stale}}})
		},
		"extend":  func(tx ledger.Tx) error { return tx.Extend(stale, long) },
		"unknown": func(tx ledger.Tx) error { return tx.Extend(ledger.Guard{TaskID: "tsk_404", Fence: 1}, long) },
	} {
		require.ErrorIs(w, w.inTx(func(tx ledger.Tx) error {
			if err := tx.Save(ledger.Change{Pools: []ledger.Pool{newPool("pol_1")}}); err != nil {
				return err
			}
			require.ErrorIs(w, report(tx), ledger.ErrFenced)
			return nil
		}), ledger.ErrFenced, name)
	}
	require.Empty(w, readValue(w, func(r ledger.Reader) ([]ledger.Pool, error) { return r.Pools(ledger.Page{}) }))
	require.NoError(w, finishTask(w, guard, time.Time{}, ""))
	require.ErrorIs(w, finishTask(w, guard, time.Time{}, ""), ledger.ErrFenced, "it is over")
}

func ofManyClaimsOneWins(w *world) {
	w.mustSave(ledger.Change{Tasks: []ledger.Task{newTask("tsk_1", w.now())}})
	const workers = 16
	outcomes := make(chan error, workers)
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			_, err := claimTask(w, "tsk_1", 0, long)
			outcomes <- err
		})
	}
	group.Wait()
	close(outcomes)
	won := 0
	for err := range outcomes {
		if err == nil {
			won++
		} else {
			require.ErrorIs(w, err, ledger.ErrFenced)
		}
	}
	require.Equal(w, 1, won)
	require.Equal(w, 1, readTask(w, "tsk_1").Fence)
}

func dispatchersShare(w *world) {
	const tasks, dispatchers = 200, 8
	now := w.now()
	var change ledger.Change
	for i := range tasks {
		change.Tasks = append(change.Tasks, newTask(fmt.Sprintf("tsk_%03d", i), now))
	}
	w.mustSave(change)
	sent := make(chan []string, dispatchers)
	failures := make(chan error, dispatchers)
	var group sync.WaitGroup
	for range dispatchers {
		group.Go(func() {
			ids, err := dispatchAll(w)
			sent <- ids
			failures <- err
		})
	}
	group.Wait()
	close(sent)
	close(failures)
	for err := range failures {
		require.NoError(w, err)
	}
	seen := map[string]bool{}
	for some := range sent {
		for _, id := range some {
			require.False(w, seen[id], "%s was sent twice", id)
			seen[id] = true
		}
	}
	require.Len(w, seen, tasks)
}

// dispatchAll dispatches until nothing is left, and returns the ids that it got.
func dispatchAll(w *world) (sent []string, err error) {
	for {
		var some []ledger.Task
		err := w.inTx(func(tx ledger.Tx) (err error) {
			some, err = tx.Dispatch(7, long)
			if len(some) > 7 {
				err = errors.Join(err, errors.New("more than asked for"))
			}
			return err
		})
		if err != nil || len(some) == 0 {
			return sent, err
		}
		sent = append(sent, taskIDs(some)...)
	}
}

func theNextTaskIsKnown(w *world) {
	next := func() time.Time {
		return readValue(w, func(r ledger.Reader) (time.Time, error) { return r.NextTask() })
	}
	now := w.now()
	require.True(w, next().IsZero())
	w.mustSave(ledger.Change{Tasks: []ledger.Task{newTask("tsk_1", now.Add(long)), newTask("tsk_2", now.Add(-long)),
		keyedTask("tsk_3", "k", time.Time{})}})
	require.Equal(w, now.Add(-long), next())
	require.Equal(w, []string{"tsk_2"}, taskIDs(dispatchTasks(w, 1, long/2)))
	require.True(w, next().After(now.Add(long/4)), "what was sent is not due before its window is over")
	require.True(w, next().Before(now.Add(long)))
	mustClaim(w, "tsk_2", 0)
	require.Equal(w, now.Add(long), next(), "what runs is not waited for")
}

// lateWorkIsKnown: a row that is sent again and again is as late as one that nobody
// sends.
func lateWorkIsKnown(w *world) {
	late := func() (at time.Time, working bool) {
		readValue(w, func(r ledger.Reader) (_ bool, err error) {
			at, working, err = r.LateSince()
			return working, err
		})
		return at, working
	}
	now := w.now()
	at, working := late()
	require.True(w, at.IsZero())
	require.False(w, working)
	w.mustSave(ledger.Change{Tasks: []ledger.Task{
		newTask("tsk_1", now.Add(-long)), keyedTask("tsk_2", "k", time.Time{}),
	}})
	require.Equal(w, []string{"tsk_1"}, taskIDs(dispatchTasks(w, 1, long)))
	at, working = late()
	require.Equal(w, now.Add(-long), at, "what was sent is not done yet")
	require.False(w, working)
	mustClaim(w, "tsk_1", 0)
	at, working = late()
	require.True(w, at.After(now), "what is being done is not late before its lease ends")
	require.True(w, working)
}

// goneWorkersAreKnown: while one worker is there, none is missed; afterwards it is known when
// the last one was.
func goneWorkersAreKnown(w *world) {
	note := func(id string, life time.Duration) {
		require.NoError(w, w.inTx(func(tx ledger.Tx) error {
			return tx.NoteWorker(ledger.Worker{ID: id, Host: "host of " + id}, life)
		}))
	}
	gone := func() (since time.Time, gone bool) {
		w.readSnapshot(func(r ledger.Reader) (err error) {
			since, gone, err = ledger.WorkersGone(r)
			return err
		})
		return since, gone
	}
	since, missing := gone()
	require.True(w, missing)
	require.True(w, since.IsZero(), "none ever was")
	note("one", time.Hour)
	note("two", -time.Second)
	_, missing = gone()
	require.False(w, missing, "one is there")
	before := w.now()
	note("one", 0)
	since, missing = gone()
	require.True(w, missing)
	require.WithinRange(w, since, before, w.now())
	all := readValue(w, func(r ledger.Reader) ([]ledger.Worker, error) { return r.Workers() })
	require.Len(w, all, 2)
	require.Equal(w, "one", all[0].ID, "seen last")
	require.Equal(w, "host of two", all[1].Host)
	note("two", -31*24*time.Hour)
	note("one", 0)
	require.Len(w, readValue(w, func(r ledger.Reader) ([]ledger.Worker, error) { return r.Workers() }), 1,
		"who is gone for a month is forgotten")
}
