//go:build services

package worker_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/sqlledger"
	"github.com/forewarm/forewarm/ledger/verbs"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/sim"
	"github.com/forewarm/forewarm/worker"
	"github.com/forewarm/forewarm/worker/queue/asynqueue"
)

// patience is how long these tests wait for the services.
const patience = 90 * time.Second

// redisDB is a database of the Redis server that no other suite uses, so that
// it can be emptied whole.
const redisDB = "13"

// newBriskWorld is a world on PostgreSQL and on the machine's clock, whose timers let
// many lives pass in seconds.
func newBriskWorld(t *testing.T, nodes int) *world {
	t.Helper()
	cfg := ledger.Config{
		CheckEvery: 200 * time.Millisecond, VerifyEvery: time.Second, ConfirmGone: 300 * time.Millisecond,
		SweepEvery: time.Second,
	}
	w := &world{t: t, clock: clock.NewManual(start), wall: clock.System{}, ids: ids.UUID{}}
	store, err := sqlledger.Open(t.Context(), sqlledger.Config{URL: makeSchema(t), MaxConns: 24})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	require.NoError(t, store.Migrate(t.Context()))
	w.store, w.ledger = store, verbs.New(store, w.ids, cfg)
	offer := cloudConfig().Offers[0]
	offer.Boot = sim.Boot{P50: 400 * time.Millisecond, P95: time.Second}
	w.cloud, err = sim.New(sim.Config{Name: "sim", Seed: 7, Terminating: 200 * time.Millisecond,
		Offers: []sim.Offer{offer}}, w.wall)
	require.NoError(t, err)
	w.bootstrapTenant()
	w.pool, err = w.ledger.CreatePool(t.Context(), w.actor, capacity.Pool{
		Name: "many", Provisioner: "sim", Region: "sim-1", Type: "a100-8", Model: "a100-80g", PerNode: 8,
		MaxNodes: nodes,
		Price:    36 * money.USD, MinBilling: time.Minute,
		Simulated: true, Timers: capacity.Timers{IdleRelease: 100 * time.Millisecond, MaxLease: time.Hour},
	}, learned.BootTimes{Prior50: time.Second, Prior95: time.Second})
	require.NoError(t, err)
	return w
}

// makeSchema makes a PostgreSQL schema for one test and returns the URL whose tables
// are in it.
func makeSchema(t *testing.T) string {
	t.Helper()
	base := os.Getenv("FOREWARM_TEST_POSTGRES")
	require.NotEmpty(t, base, "FOREWARM_TEST_POSTGRES must name a PostgreSQL database")
	name := "worker_" + strings.ToLower(rand.Text())
	executeSQL(t, base, "CREATE SCHEMA "+name)
	t.Cleanup(func() { executeSQL(t, base, "DROP SCHEMA "+name+" CASCADE") })
	parsed, err := url.Parse(base)
	require.NoError(t, err)
	query := parsed.Query()
	query.Set("search_path", name)
	parsed.RawQuery = query.Encode()
	return parsed.String()
}

func executeSQL(t *testing.T, base, statement string) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, base)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(ctx)) }()
	_, err = conn.Exec(ctx, statement)
	require.NoError(t, err)
}

func redisURL(t *testing.T) string {
	t.Helper()
	parsed, err := url.Parse(os.Getenv("FOREWARM_TEST_REDIS"))
	require.NoError(t, err)
	require.NotEmpty(t, parsed.Host, "FOREWARM_TEST_REDIS must name a Redis")
	parsed.Path = "/" + redisDB
	return parsed.String()
}

// runOwnWorker runs a worker of its own queue connection until the test ends.
func (w *world) runOwnWorker(p parts) {
	w.t.Helper()
	q, err := asynqueue.New(asynqueue.Config{
		URL: obs.NewSecret(redisURL(w.t)), PollInterval: 10 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(w.t, err)
	w.seed++
	one, err := worker.New(p.ledger, q, []provisioners.Provisioner{p.cloud}, worker.Config{
		Deployment: deployment, Concurrency: 8, Lease: 2 * time.Second, Heartbeat: 500 * time.Millisecond,
		DispatchWindow: 500 * time.Millisecond,
		Rand:           mathrand.New(mathrand.NewPCG(1, w.seed)), Logger: silentLogger(),
	})
	require.NoError(w.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- one.Run(ctx) }()
	w.t.Cleanup(func() {
		cancel()
		require.NoError(w.t, <-ended)
		require.NoError(w.t, q.Close())
	})
}

// flushRedis empties Redis every 300 ms until the test ends.
func flushRedis(t *testing.T) {
	t.Helper()
	opt, err := redis.ParseURL(redisURL(t))
	require.NoError(t, err)
	client := redis.NewClient(opt)
	ctx, cancel := context.WithCancel(context.Background())
	var flushing sync.WaitGroup
	flushing.Go(func() {
		tick := time.NewTicker(300 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				client.FlushDB(ctx)
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		flushing.Wait()
		require.NoError(t, client.Close())
	})
}

// Three workers on one PostgreSQL and one Redis that is emptied every 300 ms;
// one worker, alone until then, dies in the middle of its work and goes on
// swallowing messages.
// Every machine is made once, serves once and is removed once.
func TestTrapCRedisEmptiedAllTheTime(t *testing.T) {
	const nodes = 30
	w := newBriskWorld(t, nodes)
	dying := &death{at: 60}
	w.runOwnWorker(parts{ledger: verbs.New(mortalStore{w.store, dying}, w.ids, ledger.Config{}),
		cloud: mortalCloud{w.cloud, dying}})
	flushRedis(t)

	ids := w.allocateAll(nodes)
	w.requireEventually("the first worker is dead", dying.hasCome)
	for range 2 {
		w.runOwnWorker(parts{ledger: w.ledger, cloud: w.cloud})
	}
	w.requireEventually("every allocation is active",
		func() bool { return w.countAllocations(allocation.Active) == nodes })
	for _, id := range ids {
		_, err := w.ledger.Release(t.Context(), w.actor, id)
		require.NoError(t, err)
	}
	w.requireEventually("every node is gone", w.isQuiet)

	w.clock.Set(w.wall.Now())
	w.requireOver(nodes)
	counts := map[string]int{}
	for _, e := range w.eventTypes() {
		counts[e]++
	}
	for _, event := range []string{"node.requested", "node.provisioning", "node.booting", "node.ready", "node.gone",
		"allocation.active", "allocation.released"} {
		require.Equal(t, nodes, counts[event], event)
	}
}

func (w *world) allocateAll(n int) []string {
	w.t.Helper()
	var all []string
	org := readFrom(w, func(r ledger.Reader) (ledger.Organization, error) {
		return r.Organization(w.actor.Scope(), w.actor.OrganizationID)
	})
	_, err := w.ledger.SetLimits(w.t.Context(), w.actor, org.ID, org.Version, quota.Limits{GPUs: 8 * n}, true)
	require.NoError(w.t, err)
	for range n {
		a, err := w.ledger.Allocate(w.t.Context(), w.actor,
			ledger.AllocateRequest{Pool: "many", GPUs: 8, Lease: 30 * time.Minute})
		require.NoError(w.t, err)
		all = append(all, a.ID)
	}
	return all
}

func (w *world) countAllocations(state allocation.State) int {
	w.t.Helper()
	return len(readFrom(w, func(r ledger.Reader) ([]allocation.Allocation, error) {
		return r.Allocations(w.actor.Scope(), ledger.BookingFilter{State: []string{string(state)}},
			ledger.Page{Limit: 500})
	}))
}

func (w *world) requireEventually(what string, reached func() bool) {
	w.t.Helper()
	require.Eventually(w.t, reached, patience, 100*time.Millisecond, "%s; nodes %s", what, fmt.Sprint(w.nodeStates()))
}
