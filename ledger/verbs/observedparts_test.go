package verbs_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
)

// errCut is what a store says that is cut off.
var errCut = errors.New("cut off")

// cutStore is a store that notes how many allocations each transaction writes, and that is
// cut off after some of them.
type cutStore struct {
	ledger.Store
	sizes []int
	after int // transactions that are committed; 0: all
}

func (s *cutStore) InTx(ctx context.Context, fn func(ledger.Tx) error) error {
	return s.Store.InTx(ctx, func(tx ledger.Tx) error { return fn(&cutTx{tx, s}) })
}

type cutTx struct {
	ledger.Tx
	store *cutStore
}

func (t *cutTx) Save(c ledger.Change) error {
	if len(c.Allocations) > 0 {
		if t.store.after > 0 && len(t.store.sizes) >= t.store.after {
			return errCut
		}
		t.store.sizes = append(t.store.sizes, len(c.Allocations))
	}
	return t.Tx.Save(c)
}

// What a cluster did during an outage is noted in many small transactions. When they are
// cut off between two, the next look begins where this one did, and nothing is counted twice.
func TestALongOutageIsCaughtUpWithInParts(t *testing.T) {
	t.Parallel()
	w := newCluster(t)
	const jobs = 1300
	for i := range jobs {
		w.begin(fmt.Sprint(i), "vision", 0, 1, "")
		if i%2 == 0 {
			w.end(fmt.Sprint(i))
		}
	}
	w.clock.Advance(time.Second)
	before := w.watched()
	guard := w.claimObserving()
	seen := ledger.Observation{Provisioner: "sim", At: w.clock.Now(), SeenAt: w.clock.Now(), Mark: "after",
		Complete: true,
		Work:     w.work}
	cut := &cutStore{Store: w.store, after: 2}
	_, err := verbs.New(cut, &w.ids, ledger.Config{}).ReportObserved(t.Context(), guard, seen)
	require.ErrorIs(t, err, errCut)
	require.Equal(t, before, w.watched(), "the mark moves with the last part alone")
	noted := w.countWork()
	require.Positive(t, noted)
	require.Less(t, noted, jobs)

	whole := &cutStore{Store: w.store}
	got, err := verbs.New(whole, &w.ids, ledger.Config{}).ReportObserved(t.Context(), guard, seen)
	require.NoError(t, err)
	require.Equal(t, jobs-noted, got.Started)
	require.Equal(t, jobs, w.countWork())
	require.Equal(t, "after", w.watched().Mark)
	for _, size := range append(cut.sizes, whole.sizes...) {
		require.Less(t, size, 600)
	}

	w.work = nil // all of it is over at once, and is as much to note
	require.Equal(t, ledger.Observed{Ended: jobs / 2}, w.observe())
}

// Another worker's run is not gone on with.
func TestAPartOfALookNeedsItsRun(t *testing.T) {
	t.Parallel()
	w := newCluster(t)
	guard := w.claimObserving()
	w.clock.Advance(2 * time.Hour)
	_, err := w.ledger.Reap(t.Context())
	require.NoError(t, err)
	w.begin("17", "vision", 0, 1, "")
	_, err = w.ledger.ReportObserved(t.Context(), guard, ledger.Observation{Provisioner: "sim", At: w.clock.Now(),
		Mark: "x", Complete: true, Work: w.work})
	require.ErrorIs(t, err, ledger.ErrFenced)
	require.Zero(t, w.countWork())
}

func (w *cluster) watched() (seen ledger.Watched) {
	w.Helper()
	w.read(func(r ledger.Reader) (err error) {
		seen, err = r.Watched("sim")
		return err
	})
	return seen
}

// countWork counts all work that was ever noted.
func (w *cluster) countWork() (count int) {
	w.Helper()
	w.read(func(r ledger.Reader) error {
		for after := ""; ; {
			page, err := r.Allocations(ledger.Scope{All: true}, ledger.BookingFilter{}, ledger.Page{After: after, Limit: 500})
			if err != nil || len(page) == 0 {
				return err
			}
			count, after = count+len(page), page[len(page)-1].ID
		}
	})
	return count
}

// A look that told a portion of what was missed is followed by the next at once. One that
// cannot be complete is repeated with the others, whatever it brings, and so is one that got
// no further.
func TestThereIsMoreToALook(t *testing.T) {
	t.Parallel()
	w := newCluster(t)
	w.more = true
	for range 2 * int(ledger.BlindAfter/time.Minute) {
		w.observeSome(false)
		require.Equal(t, time.Second, w.nextLook())
		w.clock.Advance(time.Minute)
	}
	w.mark = w.watched().Mark
	w.observeSome(false)
	require.Equal(t, 10*time.Second, w.nextLook(), "it got no further")
	w.mark, w.more = "", false
	w.observe()
	require.Equal(t, 10*time.Second, w.nextLook())
	w.begin("17", "vision", 0, 1, "")
	w.observeSome(false)
	require.Equal(t, 10*time.Second, w.nextLook(), "not all is shown")
}

// nextLook is how long after the last look the next one comes.
func (w *cluster) nextLook() time.Duration {
	w.Helper()
	g := w.claimObserving()
	var at time.Time
	w.read(func(r ledger.Reader) error {
		task, err := r.Task(g.TaskID)
		at = task.RunAt
		return err
	})
	before := w.lastReport
	_, err := w.ledger.ReportObserved(w.Context(), g, ledger.Observation{Provisioner: "sim", At: w.clock.Now(),
		SeenAt: w.clock.Now(), Mark: w.watched().Mark, Complete: w.watched().BlindSince.IsZero(), Work: w.work})
	require.NoError(w, err)
	return at.Sub(before)
}

// A cluster of which no look is ever complete is a trouble, and is told of once.
func TestNeverACompleteLookIsATrouble(t *testing.T) {
	t.Parallel()
	w := newCluster(t)
	for range 5 {
		w.observeSome(false)
	}
	require.Empty(t, w.readEvents("provisioner.failing"), "a boot hides nodes for a while")
	w.clock.Advance(ledger.BlindAfter)
	for range 6 {
		w.observeSome(false)
	}
	told := w.readEvents("provisioner.failing")
	require.Len(t, told, 1)
	require.Contains(t, told[0].Message, "no look at its work was complete since")
	w.read(func(r ledger.Reader) error {
		troubles, err := w.ledger.Troubles(r)
		require.Len(t, troubles, 1)
		require.Equal(t, ledger.TaskObserve, troubles[0].Kind)
		return err
	})
	w.observe()
	require.True(t, w.watched().BlindSince.IsZero())
	w.read(func(r ledger.Reader) error {
		troubles, err := w.ledger.Troubles(r)
		require.Empty(t, troubles)
		return err
	})
}

// A run that reports a failure by itself does not work again because it ended well.
func TestARunThatReportsAFailureDoesNotWorkAgain(t *testing.T) {
	t.Parallel()
	w := newCluster(t)
	g := w.claimObserving()
	var task ledger.Task
	w.read(func(r ledger.Reader) (err error) {
		task, err = r.Task(g.TaskID)
		return err
	})
	task.Failures = ledger.TroubleAfter
	require.NoError(t, w.ledger.RetryTask(t.Context(), g, time.Minute, "still failing"))
	require.NoError(t, w.ledger.ReportWorks(t.Context(), task))
	require.Empty(t, w.readEvents("provisioner.works_again"))
	require.NoError(t, w.ledger.RetryTask(t.Context(), w.claimObserving(), time.Minute, ""))
	require.NoError(t, w.ledger.ReportWorks(t.Context(), task))
	require.Len(t, w.readEvents("provisioner.works_again"), 1)
}

// Times are those of the look, however long it takes to report it.
func TestTimesAreThoseOfTheLook(t *testing.T) {
	t.Parallel()
	w := newCluster(t)
	w.lag = 7 * time.Second
	w.clock.Advance(10 * time.Second)
	w.begin("17", "vision", 0, 1, "")
	began := w.clock.Now()
	w.clock.Advance(20 * time.Second)
	w.observe()
	require.Equal(t, began, w.workOf("17").ActiveAt.UTC())
	w.clock.Advance(time.Minute)
	w.end("17")
	ended := w.clock.Now()
	w.clock.Advance(20 * time.Second)
	w.observe()
	require.Equal(t, ended, w.workOf("17").EndedAt.UTC())
	require.Equal(t, allocation.Released, w.workOf("17").State())
}
