package ledgertest

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/ledger"
)

func aLockReadsWhatItLocks(w *world) {
	saveGround(w)
	stored := newReplay("org_1", "a")
	w.mustSave(ledger.Change{Replays: []ledger.Replay{stored, newReplay("org_2", "a")}})
	key := func(org, key string) ledger.ReplayKey {
		return ledger.ReplayKey{Owner: org, Route: stored.Route, Key: key}
	}
	require.NoError(w, w.inTx(func(tx ledger.Tx) error {
		locked, err := tx.Lock(ledger.LockRequest{
			Organizations: []string{"org_1", "org_2"}, Pools: []string{"pol_1"},
			Replays: []ledger.ReplayKey{key("org_1", "a"), key("org_1", "b"), key("org_3", "a")},
		})
		require.NoError(w, err)
		require.Equal(w, []string{"org_1", "org_2"}, []string{locked.Organizations[0].ID, locked.Organizations[1].ID})
		require.Len(w, locked.Pools, 1)
		p := newPool("pol_1")
		p.Version = 1
		require.Equal(w, p, locked.Pools[0])
		require.Equal(w, map[string]int64{"pol_1": p.Revision, "pol_2": p.Revision}, locked.Revisions)
		require.Equal(w, []ledger.Replay{stored}, locked.Replays)
		again, err := tx.Lock(ledger.LockRequest{Pools: []string{"pol_2"}})
		require.NoError(w, err)
		require.Equal(w, "pol_2", again.Pools[0].ID)
		require.Empty(w, again.Organizations)
		return nil
	}))
	require.ErrorContains(w, w.inTx(func(tx ledger.Tx) error {
		_, err := tx.Lock(ledger.LockRequest{Organizations: []string{"org_1", "org_404"}, Pools: []string{"pol_1"}})
		require.ErrorIs(w, err, ledger.ErrNotFound)
		return err
	}), "org_404")
}

func revisionsAreApartFromVersions(w *world) {
	saveGround(w)
	w.mustSave(ledger.Change{Revisions: map[string]int64{"pol_1": 1 << 62, "pol_2": 0}})
	revised := readValue(w, func(r ledger.Reader) (ledger.Pool, error) { return r.Pool("pol_1") })
	require.Equal(w, int64(1<<62), revised.Revision)
	require.Equal(w, 1, revised.Version)
	changed := revised
	changed.Revision, changed.Failures = 5, 9
	w.mustSave(ledger.Change{Pools: []ledger.Pool{changed}})
	revised.Failures, revised.Version = 9, 2
	require.Equal(w, revised, readValue(w, func(r ledger.Reader) (ledger.Pool, error) { return r.Pool("pol_1") }),
		"only Revisions set a revision")
	changed.Version = 2
	w.mustSave(ledger.Change{Pools: []ledger.Pool{changed}, Revisions: map[string]int64{"pol_1": -7}})
	require.NoError(w, w.inTx(func(tx ledger.Tx) error {
		locked, err := tx.Lock(ledger.LockRequest{})
		require.Equal(w, map[string]int64{"pol_1": -7, "pol_2": 0}, locked.Revisions)
		return err
	}))
	require.ErrorIs(w, w.save(ledger.Change{Revisions: map[string]int64{"pol_404": 1}}), ledger.ErrNotFound)
}

// revisionsAreThoseCommittedLast: who waited for a lock sees what its holder left.
func revisionsAreThoseCommittedLast(w *world) {
	saveGround(w)
	w.mustSave(ledger.Change{Revisions: map[string]int64{"pol_1": 0}})
	const writers = 64
	runConcurrently(w, writers, func(tx ledger.Tx) error {
		locked, err := tx.Lock(ledger.LockRequest{Organizations: []string{"org_1"}, Pools: []string{"pol_1"}})
		if err != nil {
			return err
		}
		if locked.Revisions["pol_1"] != locked.Pools[0].Revision {
			return fmt.Errorf("two revisions of one pool: %v", locked)
		}
		return tx.Save(ledger.Change{Revisions: map[string]int64{"pol_1": locked.Revisions["pol_1"] + 1}})
	})
	p := readValue(w, func(r ledger.Reader) (ledger.Pool, error) { return r.Pool("pol_1") })
	require.Equal(w, int64(writers), p.Revision)
}

func wakingWithinAChange(w *world) {
	far := w.now().Add(1000 * time.Hour)
	keyed := func(id, key string) ledger.Task {
		t := newTask(id, far)
		t.Key = key
		return t
	}
	w.mustSave(ledger.Change{Tasks: []ledger.Task{keyed("tsk_1", "plan:a"), keyed("tsk_2", "plan:b"),
		keyed("tsk_4", "plan:d"), keyed("tsk_5", "plan:e")}})
	soon := w.now().Add(time.Hour)
	var now time.Time
	require.NoError(w, w.inTx(func(tx ledger.Tx) error {
		now = tx.Now()
		return tx.Save(ledger.Change{
			Tasks: []ledger.Task{keyed("tsk_3", "plan:c")},
			Wake: []ledger.Wakeup{{Key: "plan:c", At: now}, {Key: "plan:404", At: now}, {Key: "plan:a", At: soon},
				{Key: "plan:a", At: now}, {Key: "plan:d", At: soon}, {Key: "plan:e", At: far.Add(time.Hour)}},
		})
	}))
	for id, want := range map[string]time.Time{"tsk_1": now, "tsk_2": far, "tsk_3": now, "tsk_4": soon, "tsk_5": far} {
		got := readValue(w, func(r ledger.Reader) (ledger.Task, error) { return r.Task(id) })
		require.Equal(w, want, got.RunAt, id)
	}
}

func theLastSaveCommits(w *world) {
	require.Error(w, w.inTx(func(tx ledger.Tx) error {
		require.NoError(w, tx.Save(ledger.Change{Pools: []ledger.Pool{newPool("pol_1")}, Last: true}))
		seen := readValue(w, func(r ledger.Reader) (ledger.Pool, error) { return r.Pool("pol_1") })
		require.Equal(w, "pol_1", seen.ID, "others see it at once")
		return tx.Save(ledger.Change{Pools: []ledger.Pool{newPool("pol_2")}})
	}), "nothing can follow")
	require.NoError(w, w.inTx(func(tx ledger.Tx) error {
		return tx.Save(ledger.Change{Last: true})
	}), "even when there is nothing to save")
	require.ErrorIs(w, w.inTx(func(tx ledger.Tx) error {
		return tx.Save(ledger.Change{Pools: []ledger.Pool{newPool("pol_1")}, Last: true})
	}), ledger.ErrTaken)
	require.ErrorIs(w, w.store.InTx(w.Context(), func(outer ledger.Tx) error {
		err := outer.Nested(func(inner ledger.Tx) error {
			return inner.Save(ledger.Change{Pools: []ledger.Pool{newPool("pol_3")}, Last: true})
		})
		require.NoError(w, err)
		require.NoError(w, outer.Save(ledger.Change{Pools: []ledger.Pool{newPool("pol_4")}}))
		return errGivenUp
	}), errGivenUp, "in a nested transaction others follow")
	all := readValue(w, func(r ledger.Reader) ([]ledger.Pool, error) { return r.Pools(ledger.Page{}) })
	require.Len(w, all, 1)
	require.Equal(w, "pol_1", all[0].ID)
}
