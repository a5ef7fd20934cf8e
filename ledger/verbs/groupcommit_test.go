package verbs_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
)

// gate is a store whose transactions a test counts, holds back, and fails.
type gate struct {
	ledger.Store
	mu           sync.Mutex
	transactions int
	fail         int           // this many transactions fail when they save
	late         bool          // those fail after they have written
	lose         int           // the answers of this many are lost, after they were committed
	again        bool          // each is tried twice, as when the database asks for it
	panics       bool          // each panics when it locks
	held         chan struct{} // not nil: transactions wait until it is closed
}

func (g *gate) InTx(ctx context.Context, fn func(ledger.Tx) error) error {
	g.mu.Lock()
	g.transactions++
	held, failed, late, lost := g.held, g.fail > 0, g.late, g.lose > 0
	again, panics := g.again, g.panics
	g.fail--
	g.lose--
	g.mu.Unlock()
	if held != nil {
		<-held
	}
	if again {
		_ = g.Store.InTx(ctx, func(tx ledger.Tx) error { return fn(full{tx}) })
	}
	err := g.Store.InTx(ctx, func(tx ledger.Tx) error {
		switch {
		case panics:
			tx = panicking{tx}
		case failed && late:
			tx = failsLate{tx}
		case failed:
			tx = full{tx}
		}
		return fn(tx)
	})
	if err == nil && lost {
		return ledger.ErrOutcomeUnknown
	}
	return err
}

var errFull = errors.New("the disk is full")

type full struct{ ledger.Tx }

func (full) Save(ledger.Change) error { return errFull }

type panicking struct{ ledger.Tx }

func (panicking) Lock(ledger.LockRequest) (ledger.Locked, error) { panic("a bug of the store") }

func (panicking) Assume(ledger.Assumption) bool { return false }

// gatedLedger is a ledger beside the world's own, over the same database.
func (w *world) gatedLedger() (*verbs.Ledger, *gate) {
	w.Helper()
	g := &gate{Store: w.store}
	l := verbs.New(g, &random{}, ledger.Config{BatchTime: time.Hour})
	_, err := l.Reserve(w.Context(), w.newPerson("carl"), ledger.ReserveRequest{Pool: "lab", GPUs: 1,
		Window: dayWindow(99)})
	require.NoError(w, err) // now the cache knows the pool
	g.transactions = 0
	return l, g
}

// random are ids that do not meet those of the world's ledger.
type random struct{ ids.UUID }

// holdTransaction has a transaction at work until release is called.
func (g *gate) holdTransaction(l *verbs.Ledger) (release func()) {
	g.mu.Lock()
	g.held = make(chan struct{})
	g.mu.Unlock()
	var working sync.WaitGroup
	working.Go(func() { _ = l.EnsureSweep(context.Background(), "sim") })
	for began := false; !began; runtime.Gosched() {
		g.mu.Lock()
		began = g.transactions > 0
		g.mu.Unlock()
	}
	return func() {
		g.mu.Lock()
		close(g.held)
		g.held = nil
		g.mu.Unlock()
		working.Wait()
	}
}

// waitForQueue returns when n verbs wait for their turn.
func waitForQueue(l *verbs.Ledger, n int) {
	for turn, _ := l.Waiting(); turn < n; turn, _ = l.Waiting() {
		runtime.Gosched()
	}
}

// sendTogether sends n requests so that all of them wait, in their order, while one
// transaction is at work, and returns what became of each.
func sendTogether(l *verbs.Ledger, g *gate, n int, send func(i int) error) []error {
	release := g.holdTransaction(l)
	var all sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		all.Go(func() { errs[i] = send(i) })
		waitForQueue(l, i+1)
	}
	release()
	all.Wait()
	return errs
}

func dayWindow(n int) calendar.Interval {
	start := monday.AddDate(0, 0, n)
	return calendar.Interval{Start: start, End: start.Add(time.Hour)}
}

func TestVerbsThatWaitShareATransaction(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l, g := w.gatedLedger()
	ann, bob := w.newPerson("ann"), w.newLimitedPerson("bob", quota.Limits{GPUs: 4})
	errs := sendTogether(l, g, 20, func(i int) error {
		_, err := l.Reserve(t.Context(), []ledger.Actor{ann, bob}[i%2],
			ledger.ReserveRequest{Pool: "lab", GPUs: 2, Window: dayWindow(7 + i)})
		return err
	})
	require.NoError(t, errors.Join(errs...))
	require.Equal(t, 2, g.transactions, "the one they waited for, and their own")
	require.Len(t, w.liveOf("key of ann"), 10)
	require.Len(t, w.liveOf("key of bob"), 10)
}

// Each decides on what the ones before it in the group left.
func TestAGroupNeverExceedsAQuotaOrAPool(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l, g := w.gatedLedger()
	bob := w.newLimitedPerson("bob", quota.Limits{GPUs: 3})
	errs := sendTogether(l, g, 6, func(int) error {
		_, err := l.Reserve(t.Context(), bob, ledger.ReserveRequest{Pool: "lab", GPUs: 1, Window: dayWindow(7)})
		return err
	})
	for i, err := range errs {
		if i < 3 {
			require.NoError(t, err)
			continue
		}
		var refused *ledger.RefusedError
		require.ErrorAs(t, err, &refused)
	}
	require.Equal(t, 2, g.transactions)
}

// Two that change the same row follow one another, each with a version of its own.
func TestTwoOfOneRowDoNotShare(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l, g := w.gatedLedger()
	ann := w.newPerson("ann")
	r, err := l.Reserve(t.Context(), ann, ledger.ReserveRequest{Pool: "lab", GPUs: 1, Window: dayWindow(7)})
	require.NoError(t, err)
	errs := sendTogether(l, g, 2, func(int) error {
		_, err := l.CancelReservation(t.Context(), ann, r.ID)
		return err
	})
	require.NoError(t, errs[0])
	var state *ledger.StateError
	require.ErrorAs(t, errs[1], &state, "it was cancelled before")
	require.Equal(t, 2, w.readReservation(r.ID).Version)
}

// When a group cannot be saved, each of it is tried alone: one bad apple does not
// spoil the others, and nothing is booked twice.
func TestAGroupThatFailsIsTakenApart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l, g := w.gatedLedger()
	ann := w.newPerson("ann")
	g.mu.Lock()
	g.fail = 3 // the one they wait for, their group, and the first alone
	g.mu.Unlock()
	errs := sendTogether(l, g, 4, func(int) error {
		_, err := l.Reserve(t.Context(), ann, ledger.ReserveRequest{Pool: "lab", GPUs: 2, Window: dayWindow(7)})
		return err
	})
	require.ErrorIs(t, errs[0], errFull)
	require.NoError(t, errors.Join(errs[1:]...))
	require.Len(t, w.liveOf("key of ann"), 3)
	_, err := l.Reserve(t.Context(), ann, ledger.ReserveRequest{Pool: "lab", GPUs: 2, Window: dayWindow(7)})
	require.NoError(t, err, "what failed holds no place")
}

// What another process did in between is seen, whatever is remembered.
// TestALostCommitIsNotRepeatedBlindly: who has a stored answer gets it, the others
// are told that it is not known, and nothing is booked twice.
func TestALostCommitIsNotRepeatedBlindly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l, g := w.gatedLedger()
	ann := w.newPerson("ann")
	book := func(ctx context.Context, l *verbs.Ledger, i int) error {
		_, err := l.Reserve(ctx, ann, ledger.ReserveRequest{Pool: "lab", GPUs: 1, Window: dayWindow(7 + i)})
		return err
	}
	g.lose = 2 // of the one that holds the others back, and of the group
	errs := sendTogether(l, g, 6, func(i int) error {
		if i%2 == 0 {
			return book(t.Context(), l, i)
		}
		status, _, _, err := l.Once(t.Context(), ann,
			ledger.Once{Route: "r", Key: fmt.Sprint(i), LockHint: &ledger.LockHint{Pool: "lab"}},
			func(ctx context.Context, l *verbs.Ledger) (int, []byte, error) { return 201, nil, book(ctx, l, i) })
		if err == nil && status != 201 {
			return fmt.Errorf("status %d", status)
		}
		return err
	})
	for i, err := range errs {
		if i%2 == 0 {
			require.ErrorIs(t, err, ledger.ErrOutcomeUnknown)
		} else {
			require.NoError(t, err)
		}
	}
	require.NoError(t, w.store.Read(t.Context(), func(r ledger.Reader) error {
		made, err := r.Reservations(ledger.Scope{OrganizationID: ann.OrganizationID}, ledger.BookingFilter{},
			ledger.Page{})
		require.Len(t, made, 6, "each once")
		return err
	}))
}

func TestThePoolCacheIsNeverStale(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l, _ := w.gatedLedger()
	ann := w.newPerson("ann")
	for i := range 8 {
		by := []*verbs.Ledger{l, w.ledger}[i%2]
		_, err := by.Reserve(t.Context(), ann, ledger.ReserveRequest{Pool: "lab", GPUs: 1, Window: dayWindow(7)})
		require.NoError(t, err)
	}
	for _, by := range []*verbs.Ledger{l, w.ledger} {
		_, err := by.Reserve(t.Context(), ann, ledger.ReserveRequest{Pool: "lab", GPUs: 1, Window: dayWindow(7)})
		var refused *ledger.RefusedError
		require.ErrorAs(t, err, &refused)
	}
}

// Of two with one idempotency key that wait together, one has an effect and both
// get its answer.
func TestTwinsInOneGroup(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l, g := w.gatedLedger()
	ann := w.newPerson("ann")
	bodies := make([]string, 2)
	errs := sendTogether(l, g, 2, func(i int) error {
		_, body, _, err := l.Once(t.Context(), ann, ledger.Once{Route: "r", Key: "k", Hash: []byte("h"),
			LockHint: &ledger.LockHint{Pool: "lab"}},
			func(ctx context.Context, l *verbs.Ledger) (int, []byte, error) {
				r, err := l.Reserve(ctx, ann, ledger.ReserveRequest{Pool: "lab", GPUs: 1, Window: dayWindow(7)})
				return 201, []byte(r.ID), err
			})
		bodies[i] = string(body)
		return err
	})
	require.NoError(t, errors.Join(errs...))
	require.Equal(t, bodies[0], bodies[1])
	require.Len(t, w.liveOf("key of ann"), 1)
}

// A verb that panics harms nobody but its caller.
func TestAPanicStaysWithItsCaller(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l, g := w.gatedLedger()
	ann := w.newPerson("ann")
	errs := sendTogether(l, g, 3, func(i int) (err error) {
		defer func() {
			if v := recover(); v != nil {
				err = errors.New("panicked")
			}
		}()
		_, _, _, err = l.Once(t.Context(), ann, ledger.Once{Route: "r", Key: string(rune('a' + i)),
			LockHint: &ledger.LockHint{Pool: "lab"}},
			func(ctx context.Context, l *verbs.Ledger) (int, []byte, error) {
				_, err := l.Reserve(ctx, ann, ledger.ReserveRequest{Pool: "lab", GPUs: 1, Window: dayWindow(7)})
				if i == 1 {
					panic("a bug")
				}
				return 201, nil, err
			})
		return err
	})
	require.NoError(t, errs[0])
	require.ErrorContains(t, errs[1], "panicked")
	require.NoError(t, errs[2])
	require.Len(t, w.liveOf("key of ann"), 2, "what the panicking one had booked is gone")
}

// A group is tried again of which the first try has shown that one has to run alone.
func TestAGroupThatIsTriedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l, g := w.gatedLedger()
	w.addPool("unknown", money.USD, func(*capacity.Pool) {}) // to the cache of the other ledger
	ann := w.newPerson("ann")
	g.again = true
	errs := sendTogether(l, g, 3, func(i int) error {
		_, err := l.Reserve(t.Context(), ann, ledger.ReserveRequest{Pool: []string{"lab", "unknown", "lab"}[i], GPUs: 1,
			Window: dayWindow(7 + i)})
		return err
	})
	require.NoError(t, errors.Join(errs...))
	require.Len(t, w.liveOf("key of ann"), 3)
}

// A leader that panics, by a bug outside of all verbs, leaves nobody waiting.
func TestAPanicOfALeaderLeavesNobodyWaiting(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l, g := w.gatedLedger()
	ann := w.newPerson("ann")
	reserve := func(i int) (err error) {
		defer func() {
			if v := recover(); v != nil {
				err = fmt.Errorf("panicked: %v", v)
			}
		}()
		_, err = l.Reserve(t.Context(), ann, ledger.ReserveRequest{Pool: "lab", GPUs: 1, Window: dayWindow(7 + i)})
		return err
	}
	release := g.holdTransaction(l)
	g.panics = true
	var all sync.WaitGroup
	errs := make([]error, 3)
	for i := range errs {
		all.Go(func() { errs[i] = reserve(i) })
		waitForQueue(l, i+1)
	}
	release()
	all.Wait()
	require.ErrorContains(t, errs[0], "panicked: a bug of the store")
	require.ErrorIs(t, errs[1], ledger.ErrOutcomeUnknown)
	require.ErrorIs(t, errs[2], ledger.ErrOutcomeUnknown)
	g.panics = false
	require.NoError(t, reserve(3), "the lead was handed over")
}

// Who gives up while waiting has no effect, and holds up nobody.
func TestGivingUpWhileWaiting(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l, g := w.gatedLedger()
	ann := w.newPerson("ann")
	ctx, cancel := context.WithCancel(t.Context())
	release := g.holdTransaction(l)
	gone := make(chan error, 1)
	go func() {
		_, err := l.Reserve(ctx, ann, ledger.ReserveRequest{Pool: "lab", GPUs: 1, Window: dayWindow(7)})
		gone <- err
	}()
	waitForQueue(l, 1)
	cancel()
	require.ErrorIs(t, <-gone, context.Canceled)
	release()
	_, err := l.Reserve(t.Context(), ann, ledger.ReserveRequest{Pool: "lab", GPUs: 1, Window: dayWindow(8)})
	require.NoError(t, err)
	require.Len(t, w.liveOf("key of ann"), 1)
}
