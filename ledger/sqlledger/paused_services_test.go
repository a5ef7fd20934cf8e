//go:build services

package sqlledger_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/sqlledger"
	"github.com/forewarm/forewarm/ledger/verbs"
)

// setUpSite returns the URL of a database with two pools and a tenant of each, and
// a ledger over it.
func setUpSite(t *testing.T) (address string, l *verbs.Ledger) {
	t.Helper()
	address = createDatabase(t)
	store := openInstance(t, address)
	require.NoError(t, store.Migrate(t.Context()))
	change := ledger.Change{}
	for i := range 2 {
		change.Organizations = append(change.Organizations, ledger.Organization{
			ID: fmt.Sprintf("org_%d", i+1), Name: fmt.Sprint("tenant ", i+1), Limits: quota.Limits{GPUs: 10_000},
		})
		change.Pools = append(change.Pools, ledger.Pool{Pool: capacity.Pool{
			ID: fmt.Sprintf("pol_%d", i+1), Name: fmt.Sprint("pool", i+1), Model: "a100", PerNode: 8, MaxNodes: 100,
			Provisioner: "sim", Region: "r", Type: "m", Timers: capacity.Timers{MaxLease: 24 * time.Hour},
		}})
	}
	require.NoError(t, saveChange(t, store, change))
	return address, verbs.New(store, &ids.UUID{}, ledger.Config{})
}

// reserveGPU reserves a GPU in pool n for tenant n.
func reserveGPU(ctx context.Context, l *verbs.Ledger, n, day int) error {
	begin := time.Now().UTC().Truncate(time.Hour).AddDate(0, 0, 1+day)
	actor := ledger.Actor{OrganizationID: fmt.Sprintf("org_%d", n), KeyID: "key_1", Kind: ledger.PersonKey,
		Role: ledger.Member}
	_, err := l.Reserve(ctx, actor, ledger.ReserveRequest{
		Pool: fmt.Sprint("pool", n), GPUs: 1, Window: calendar.Interval{Start: begin, End: begin.Add(time.Hour)},
	})
	return err
}

// longerThanAnyWait is when a request ends that hangs: all that wait are told sooner.
const longerThanAnyWait = time.Minute

// holdPaused acts as a process that stops in the middle of a transaction: it holds
// what the statement locks, and says nothing more. After a while the server ends
// it.
func holdPaused(t *testing.T, address, idle, statement string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address+"&idle_in_transaction_session_timeout="+idle)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	_, err = conn.Exec(t.Context(), "BEGIN")
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), statement)
	require.NoError(t, err)
	return conn
}

// endPaused has the server end who is paused, as it does after a while.
func endPaused(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	_, err := conn.Exec(t.Context(), "SET LOCAL idle_in_transaction_session_timeout = '1ms'")
	require.NoError(t, err)
}

// TestAPausedHolderDelaysOnlyItsPool: whoever needs what it holds goes on once the
// server has ended it; whoever books elsewhere does so meanwhile.
func TestAPausedHolderDelaysOnlyItsPool(t *testing.T) {
	t.Parallel()
	for name, held := range map[string]string{
		"the pool's row":      "SELECT 1 FROM pools WHERE id = 'pol_1' FOR NO KEY UPDATE",
		"the organization's":  "SELECT 1 FROM organizations WHERE id = 'org_1' FOR NO KEY UPDATE",
		"the row of its plan": "UPDATE tasks SET last_error = 'x' WHERE key = 'plan:pol_1'",
		"a revision and the plan's": "UPDATE pools SET revision = 1 WHERE id = 'pol_1'; " +
			"UPDATE tasks SET last_error = 'x' WHERE key = 'plan:pol_1'",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address, l := setUpSite(t)
			plan := ledger.Task{ID: "tsk_1", Key: ledger.PlanKey("pol_1"), Kind: ledger.TaskPlan, Subject: "pol_1",
				State: ledger.TaskReady, RunAt: start.AddDate(10, 0, 0), CreatedAt: start}
			require.NoError(t, saveChange(t, l.Store(), ledger.Change{Tasks: []ledger.Task{plan}}))
			require.NoError(t, reserveGPU(t.Context(), l, 1, 0), "the cache knows both")
			require.NoError(t, reserveGPU(t.Context(), l, 2, 0))
			require.NoError(t, sqlledger.ExecBehind(t.Context(), openInstance(t, address),
				"UPDATE tasks SET run_at = 4102444800000000")) // it sleeps
			holder := holdPaused(t, address, "1min", held)

			var group sync.WaitGroup
			var stuck sync.Map
			for i := range 20 {
				group.Go(func() {
					ctx, cancel := context.WithTimeout(context.Background(), longerThanAnyWait)
					defer cancel()
					stuck.Store(i, reserveGPU(ctx, l, 1, i))
				})
			}
			awaitLock(t, address)
			for i := range 25 {
				require.NoError(t, reserveGPU(t.Context(), l, 2, i))
			}
			stuck.Range(func(i, err any) bool { t.Fatalf("booking %v was not held up: %v", i, err); return false })
			endPaused(t, holder)
			group.Wait()
			stuck.Range(func(_, err any) bool { require.Nil(t, err); return true })
		})
	}
}

// TestAServerThatHasJustBegunWaits: it knows no pool by its name yet, finds out what it locks by running, and waits as
// long as one that knows.
func TestAServerThatHasJustBegunWaits(t *testing.T) {
	t.Parallel()
	for name, held := range map[string]string{
		"the pool's row":     "SELECT 1 FROM pools WHERE id = 'pol_1' FOR NO KEY UPDATE",
		"the organization's": "SELECT 1 FROM organizations WHERE id = 'org_1' FOR NO KEY UPDATE",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address, l := setUpSite(t)
			holdPaused(t, address, "1s", held)
			ctx, cancel := context.WithTimeout(t.Context(), longerThanAnyWait)
			defer cancel()
			require.NoError(t, reserveGPU(ctx, l, 1, 0))
		})
	}
}

// TestAHolderThatComesAndGoes: two servers that have just begun book in a pool that somebody else holds most of the
// time, and none of their requests is refused, as the pool is free again and again.
func TestAHolderThatComesAndGoes(t *testing.T) {
	t.Parallel()
	address, l := setUpSite(t)
	holder, err := pgx.Connect(t.Context(), address)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	var coming sync.WaitGroup
	coming.Go(func() {
		for ctx.Err() == nil {
			_, _ = holder.Exec(context.Background(), "BEGIN; "+
				"SELECT 1 FROM organizations WHERE id = 'org_1' FOR NO KEY UPDATE; "+
				"SELECT 1 FROM pools WHERE id = 'pol_1' FOR NO KEY UPDATE; "+
				"SELECT pg_sleep(0.3); COMMIT; SELECT pg_sleep(0.02)")
		}
	})
	var group sync.WaitGroup
	for server := range 2 {
		another := verbs.New(openInstance(t, address), &ids.UUID{}, ledger.Config{})
		for n := range 12 {
			group.Go(func() {
				on := l
				if server == 1 {
					on = another
				}
				ctx, cancel := context.WithTimeout(context.Background(), longerThanAnyWait)
				defer cancel()
				assert.NoError(t, reserveGPU(ctx, on, 1, n))
			})
		}
	}
	group.Wait()
	stop()
	coming.Wait()
	require.NoError(t, holder.Close(context.Background()))
}

// noneHeld is a store whose rows are free whenever somebody asks, as they can be between two holders.
type noneHeld struct{ ledger.Store }

func (noneHeld) Held(context.Context, ledger.Rows) (ledger.Rows, error) { return ledger.Rows{}, nil }

// TestHoldersThatFollowEachOther: a server whose patience with locks ran out between two holders goes on waiting,
// whether it knows the pool or has just begun.
func TestHoldersThatFollowEachOther(t *testing.T) {
	t.Parallel()
	for name, knows := range map[string]bool{"it knows the pool": true, "it has just begun": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address, _ := setUpSite(t)
			l := verbs.New(noneHeld{openInstance(t, address)}, &ids.UUID{}, ledger.Config{})
			if knows {
				require.NoError(t, reserveGPU(t.Context(), l, 1, 0))
			}
			holdPaused(t, address, "4s", "SELECT 1 FROM pools WHERE id = 'pol_1' FOR NO KEY UPDATE")
			var group sync.WaitGroup
			for day := range 3 {
				group.Go(func() {
					ctx, cancel := context.WithTimeout(context.Background(), longerThanAnyWait)
					defer cancel()
					assert.NoError(t, reserveGPU(ctx, l, 1, 1+day))
				})
			}
			group.Wait()
		})
	}
}

// lockedReads counts the pools that are read as a whole in transactions.
type lockedReads struct {
	ledger.Store
	count atomic.Int32
}

func (s *lockedReads) InTx(ctx context.Context, fn func(ledger.Tx) error) error {
	return s.Store.InTx(ctx, func(tx ledger.Tx) error { return fn(countingTx{tx, s}) })
}

type countingTx struct {
	ledger.Tx
	store *lockedReads
}

func (tx countingTx) PoolState(id string) (ledger.PoolState, error) {
	tx.store.count.Add(1)
	return tx.Tx.PoolState(id)
}

func (tx countingTx) Snapshot(fn func(ledger.Reader) error) error {
	tx.store.count.Add(1)
	return tx.Tx.Snapshot(fn)
}

// TestAServerReadsPoolsBeforeItLocks: others wait for its lock, not for what it reads when it has just begun.
func TestAServerReadsPoolsBeforeItLocks(t *testing.T) {
	t.Parallel()
	address, l := setUpSite(t)
	require.NoError(t, reserveGPU(t.Context(), l, 1, 0))
	store := &lockedReads{Store: openInstance(t, address)}
	begun := verbs.New(store, &ids.UUID{}, ledger.Config{})
	require.NoError(t, reserveGPU(t.Context(), begun, 1, 1))
	require.NoError(t, reserveGPU(t.Context(), begun, 2, 1))
	require.Zero(t, store.count.Load())
}

// awaited is a store that notes until when it may wait.
type awaited struct {
	ledger.Store
	until chan time.Time
}

func (s awaited) Await(ctx context.Context, r ledger.Rows) error {
	until, _ := ctx.Deadline()
	s.until <- until
	return s.Store.Await(ctx, r)
}

// TestABusyPoolIsSaid: if a holder stays, the request fails with ErrBusy before its
// deadline.
func TestABusyPoolIsSaid(t *testing.T) {
	t.Parallel()
	address, _ := setUpSite(t)
	store := awaited{openInstance(t, address), make(chan time.Time, 100)}
	l := verbs.New(store, &ids.UUID{}, ledger.Config{})
	require.NoError(t, reserveGPU(t.Context(), l, 1, 0))
	holdPaused(t, address, "1min", "SELECT 1 FROM pools WHERE id = 'pol_1' FOR NO KEY UPDATE")
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	require.ErrorIs(t, reserveGPU(ctx, l, 1, 1), ledger.ErrBusy)
	deadline, _ := ctx.Deadline()
	require.Equal(t, deadline.Add(-time.Second), <-store.until, "there is time left to say it")
}

// TestALostConnectionIsTriedAgain: nothing can have been done before the COMMIT was
// sent, so it is done again on another connection.
func TestALostConnectionIsTriedAgain(t *testing.T) {
	t.Parallel()
	address, l := setUpSite(t)
	runs := 0
	require.NoError(t, l.Store().InTx(t.Context(), func(tx ledger.Tx) error {
		locked, err := tx.Lock(lockPools("pol_1"))
		if err != nil {
			return err
		}
		if runs++; runs == 1 {
			execAdmin(t, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE state = 'idle in "+
				"transaction' AND datname = '"+nameOf(t, address)+"'")
		}
		return tx.Save(ledger.Change{Revisions: map[string]int64{"pol_1": locked.Revisions["pol_1"] + 1}, Last: true})
	}))
	require.Equal(t, 2, runs)
}

func nameOf(t *testing.T, address string) string {
	t.Helper()
	config, err := pgx.ParseConfig(address)
	require.NoError(t, err)
	return config.Database
}

// TestAVerbThatWaitedReadsTheClockAgain: whoever held the pool meanwhile may have
// ended a lease a moment ago. What follows on the same GPU begins after that.
func TestAVerbThatWaitedReadsTheClockAgain(t *testing.T) {
	t.Parallel()
	address, l := setUpSite(t)
	holder := holdPaused(t, address, "1min", "SELECT 1 FROM pools WHERE id = 'pol_1' FOR NO KEY UPDATE")
	began := make(chan time.Time, 1)
	go func() {
		_ = l.Store().InTx(context.Background(), func(tx ledger.Tx) error {
			for _, o := range []ledger.LockRequest{{Organizations: []string{"org_1"}}, {Pools: []string{"pol_1"}}} {
				if _, err := tx.Lock(o); err != nil {
					return err
				}
			}
			began <- tx.Now()
			return nil
		})
		close(began)
	}()
	awaitLock(t, address)
	var freed time.Time
	require.NoError(t, holder.QueryRow(t.Context(), "SELECT clock_timestamp()").Scan(&freed))
	_, err := holder.Exec(t.Context(), "COMMIT")
	require.NoError(t, err)
	require.False(t, (<-began).Before(freed))
}

// awaitLock returns once a session of the database waits for a lock. It asks
// outside any transaction: inside one, PostgreSQL repeats its first answer.
func awaitLock(t *testing.T, address string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	require.NoError(t, err)
	defer func() { _ = conn.Close(context.Background()) }()
	require.Eventually(t, func() bool {
		var waiting int
		err := conn.QueryRow(t.Context(), countLockWaits).Scan(&waiting)
		return err == nil && waiting > 0
	}, time.Minute, time.Millisecond)
}
