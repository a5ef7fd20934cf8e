package main_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/sqlledger"
	"github.com/forewarm/forewarm/ledger/verbs"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/sim"
	"github.com/forewarm/forewarm/worker"
	"github.com/forewarm/forewarm/worker/queue/memqueue"
)

// The race: twice as many people as there are GPUs, each asking one of several
// servers.
const (
	askers   = 200
	perNode  = 4
	slots    = askers / 2 / perNode
	poolGPUs = slots * perNode
	servers  = 3
)

// Trap a, embedded: see raceForGPUs.
func TestTrapASQLite(t *testing.T) {
	t.Parallel()
	raceForGPUs(t, "sqlite://"+t.TempDir()+"/race.db")
}

// race is several servers with their workers over one database and one cloud.
type race struct {
	ledgers []*verbs.Ledger
	actor   ledger.Actor
	pool    ledger.Pool
}

// raceForGPUs lets people ask for twice the GPUs that there are, of several
// servers at once, while several workers boot nodes and hand them out. Exactly as
// many are served as fit, no GPU is in two hands at any moment, and what is
// counted as used is what is held, also after everybody gave back three times.
func raceForGPUs(t *testing.T, url string) {
	r := newRace(t, url)
	watched := r.watchPool(t)
	won := r.allocateAtOnce(t)
	require.Len(t, won, poolGPUs, "as many as fit, and all of them")
	eventually(t, patience, func() string { return r.unservedText(t) })
	r.checkHeld(t)
	r.releaseThrice(t, won)
	eventually(t, patience, func() string {
		state := r.readPoolState(t)
		if len(state.Allocations)+len(state.Nodes) > 0 {
			return fmt.Sprintf("%d allocations and %d nodes are left", len(state.Allocations), len(state.Nodes))
		}
		return ""
	})
	assert.Zero(t, r.usedGPUs(t))
	assert.Greater(t, watched(), 5, "looks at the pool during the race")
}

func newRace(t *testing.T, url string) *race {
	t.Helper()
	cloud, err := sim.New(sim.Config{Terminating: time.Millisecond, Offers: []sim.Offer{{
		Type: "sim-4", Model: "a100", GPUs: perNode, MemoryMiB: 81920,
		Boot: sim.Boot{P50: 300 * time.Millisecond, P95: time.Second},
	}}}.WithDefaults(), clock.System{})
	require.NoError(t, err)
	r := &race{}
	quick := ledger.Config{ConfirmGone: 100 * time.Millisecond, CheckEvery: 100 * time.Millisecond,
		SweepEvery: time.Second}
	for i := range servers {
		store, err := sqlledger.Open(t.Context(), sqlledger.Config{URL: url, Seed: uint64(i)}) //nolint:gosec // small
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, store.Close()) })
		if i == 0 {
			require.NoError(t, store.Migrate(t.Context()))
		}
		r.ledgers = append(r.ledgers, verbs.New(store, ids.UUID{}, quick))
	}
	r.createPool(t)
	r.startWorkers(t, cloud)
	return r
}

// createPool makes the organization and the pool.
func (r *race) createPool(t *testing.T) {
	t.Helper()
	key := ledger.Key{ID: "key_race", Name: "race", Kind: ledger.PersonKey, Role: ledger.Operator, Hash: []byte{1}}
	made, err := r.ledgers[0].Bootstrap(t.Context(), "race", quota.Limits{GPUs: askers}, key)
	require.NoError(t, err)
	require.True(t, made)
	stored, err := r.ledgers[0].Authenticate(t.Context(), key.ID)
	require.NoError(t, err)
	r.actor = ledger.Actor{KeyID: key.ID, Kind: key.Kind, OrganizationID: stored[0].Key.OrganizationID,
		Role: ledger.Member, Via: "api"}
	r.pool, err = r.ledgers[0].CreatePool(t.Context(), ledger.SystemActor("config"), capacity.Pool{
		Name: "race", Provisioner: "sim", Type: "sim-4", Model: "a100", PerNode: perNode, MemoryMiB: 81920,
		Price: money.USD, MaxNodes: slots,
		Timers: capacity.Timers{WarmHold: time.Minute, IdleRelease: time.Second, MaxLease: time.Hour}, Simulated: true,
	}, learned.BootTimes{Prior50: time.Second, Prior95: time.Second})
	require.NoError(t, err)
}

// startWorkers runs a worker beside each server until the test ends.
func (r *race) startWorkers(t *testing.T, cloud provisioners.Provisioner) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	for i, l := range r.ledgers {
		q := memqueue.New(slog.New(slog.DiscardHandler))
		w, err := worker.New(l, q, []provisioners.Provisioner{cloud}, worker.Config{
			Deployment: "race", Heartbeat: 3 * time.Second, Logger: slog.New(slog.DiscardHandler),
			Rand: rand.New(rand.NewPCG(uint64(i), 1)), //nolint:gosec // a test's chance is to be repeatable
		})
		require.NoError(t, err)
		wait.Go(func() { assert.NoError(t, w.Run(ctx)); assert.NoError(t, q.Close()) })
	}
	t.Cleanup(func() { cancel(); wait.Wait() })
}

// allocateAtOnce asks for one GPU each, all at once, and returns what was given.
func (r *race) allocateAtOnce(t *testing.T) []string {
	t.Helper()
	var mu sync.Mutex
	var won []string
	var wait sync.WaitGroup
	begin := make(chan struct{})
	for i := range askers {
		wait.Go(func() {
			<-begin
			a, err := r.ledgers[i%servers].Allocate(t.Context(), r.actor,
				ledger.AllocateRequest{Pool: "race", GPUs: 1, Lease: time.Hour})
			var refused *ledger.RefusedError
			if errors.As(err, &refused) {
				return
			}
			if assert.NoError(t, err) {
				mu.Lock()
				defer mu.Unlock()
				won = append(won, a.ID)
			}
		})
	}
	close(begin)
	wait.Wait()
	return won
}

// watchPool looks at the pool all the time, and says how often it could.
func (r *race) watchPool(t *testing.T) (looks func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var count atomic.Int32
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			r.checkHeld(t)
			count.Add(1)
			<-time.After(20 * time.Millisecond)
		}
	}()
	stop := sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(stop)
	return func() int { stop(); return int(count.Load()) }
}

func (r *race) readPoolState(t *testing.T) (state ledger.PoolState) {
	t.Helper()
	assert.NoError(t, r.ledgers[0].Store().Read(context.Background(), func(read ledger.Reader) (err error) {
		state, err = read.PoolState(r.pool.ID)
		return err
	}))
	return state
}

// checkHeld holds what is in people's hands against what there is.
func (r *race) checkHeld(t *testing.T) {
	t.Helper()
	state := r.readPoolState(t)
	holder, exists := map[string]string{}, map[string]bool{}
	for _, n := range state.Nodes {
		for _, d := range n.Devices {
			exists[d.UUID] = true
		}
	}
	asked := 0
	for _, a := range state.Allocations {
		asked += a.Shape.GPUs()
		for _, d := range a.Devices {
			assert.Empty(t, holder[d.UUID], "GPU %s is also in the hands of %s", d.UUID, a.ID)
			assert.True(t, exists[d.UUID], "GPU %s of %s is of no live node", d.UUID, a.ID)
			holder[d.UUID] = a.ID
		}
	}
	assert.LessOrEqual(t, asked, poolGPUs)
	assert.LessOrEqual(t, len(state.Nodes), slots)
}

// unservedText says who still waits, or what the books make of it when nobody does.
func (r *race) unservedText(t *testing.T) string {
	t.Helper()
	held := 0
	for _, a := range r.readPoolState(t).Allocations {
		if a.State() == allocation.Active {
			held += len(a.Devices)
		}
	}
	if used := r.usedGPUs(t); held != poolGPUs || used != poolGPUs {
		return fmt.Sprintf("%d GPUs are held and %d are on the books, of %d", held, used, poolGPUs)
	}
	return ""
}

// usedGPUs is what the organization is charged for now.
func (r *race) usedGPUs(t *testing.T) (used int) {
	t.Helper()
	assert.NoError(t, r.ledgers[0].Store().Read(t.Context(), func(read ledger.Reader) error {
		c, err := read.Commitments(r.actor.OrganizationID)
		used = int(c.All.At(read.Now())[quota.GPUs])
		return err
	}))
	return used
}

// releaseThrice gives everything back three times, of different servers at once:
// exactly one of the three is right.
func (r *race) releaseThrice(t *testing.T, won []string) {
	t.Helper()
	var wait sync.WaitGroup
	var released atomic.Int32
	for _, id := range won {
		for _, l := range r.ledgers {
			wait.Go(func() {
				_, err := l.Release(t.Context(), r.actor, id)
				var state *ledger.StateError
				switch {
				case err == nil:
					released.Add(1)
				case !errors.As(err, &state):
					assert.NoError(t, err)
				}
			})
		}
	}
	wait.Wait()
	assert.EqualValues(t, len(won), released.Load(), "releases that were right")
}
