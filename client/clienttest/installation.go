// Package clienttest runs a whole installation in a test's or example's process: the real server
// with its worker, over a database in memory, and a simulated cloud whose machines boot in a
// moment. A step that fails panics, as examples have nobody else to tell.
package clienttest

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/httpx"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/internal/keys"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/sqlledger"
	"github.com/forewarm/forewarm/ledger/verbs"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/sim"
	"github.com/forewarm/forewarm/server"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/worker"
	"github.com/forewarm/forewarm/worker/queue/memqueue"
)

// Installation has one pool, lab: two nodes of four A100 each.
type Installation struct {
	URL  string
	Key  string // of an operator
	stop []func()
}

// Client is a client of the installation, as an operator.
func (i *Installation) Client() *client.Client {
	return must(client.New(i.URL, i.Key, &http.Client{Timeout: time.Minute}))
}

// Close stops everything, the last that was started first.
func (i *Installation) Close() {
	for n := len(i.stop) - 1; n >= 0; n-- {
		i.stop[n]()
	}
}

// Start starts an installation.
func Start() *Installation {
	i := &Installation{}
	ctx, cancel := context.WithCancel(context.Background())
	store := must(sqlledger.Open(ctx, sqlledger.Config{URL: "sqlite://:memory:", Unsafe: true}))
	i.stop = append(i.stop, func() { _ = store.Close() })
	check(store.Migrate(ctx))
	books := verbs.New(store, ids.UUID{}, ledger.Config{CheckEvery: 20 * time.Millisecond})
	pepper := must(keys.ParsePepper("1:" + strings.Repeat("5a", 32)))
	i.makeFirstKey(ctx, books, pepper)
	makeLab(ctx, books)

	quiet := slog.New(slog.DiscardHandler)
	free := auth.Rate{PerSecond: -1}
	api := must(server.New(server.Config{Ledger: books, Peppers: []keys.Pepper{pepper}, Environment: "test",
		Version: "example", Simulation: true, Logger: quiet,
		NewDaemon: 5 * time.Minute, // a busy machine takes long to start a daemon, and its users wait for it
		Limits:    server.Limits{Reads: free, Writes: free, Agents: free, OrganizationWrites: free, Failures: free}}))
	cloud := must(sim.New(sim.Config{Name: "sim", Offers: []sim.Offer{{
		Type: "a100-4", Model: "a100", GPUs: 4, MemoryMiB: 81_920, Price: provisioners.Price(8 * money.USD),
		Boot: sim.Boot{P50: 20 * time.Millisecond, P95: 20 * time.Millisecond, Min: 20 * time.Millisecond},
	}}}.WithDefaults(), clock.System{}))
	tasks := memqueue.New(quiet)
	hands := must(worker.New(books, tasks, []provisioners.Provisioner{cloud}, worker.Config{Deployment: "example",
		Heartbeat: 3 * time.Second, Logger: quiet, Rand: rand.New(rand.NewPCG(1, 1))})) //nolint:gosec // repeatable
	var running sync.WaitGroup
	running.Go(func() { _ = api.Run(ctx) })
	running.Go(func() { _ = hands.Run(ctx) })
	i.stop = append(i.stop, func() { cancel(); running.Wait(); _ = tasks.Close() })

	listening := httptest.NewUnstartedServer(api)
	listening.Config.Protocols = httpx.NewServer("", nil).Protocols // the streams of daemons want HTTP/2
	listening.Start()
	i.stop = append(i.stop, listening.Close)
	i.URL = listening.URL
	return i
}

// makeFirstKey makes the organization acme and its operator's key.
func (i *Installation) makeFirstKey(ctx context.Context, books *verbs.Ledger, pepper keys.Pepper) {
	mint := auth.Minter{Environment: "test", Pepper: pepper, Random: rand.NewChaCha8([32]byte{2})}
	root, secret, err := mint.Mint(ledger.Key{Name: "root"})
	check(err)
	must(books.Bootstrap(ctx, "acme", quota.Limits{GPUs: 64, SpeculationPerDay: 100 * money.USD}, root))
	i.Key = secret.Reveal()
}

// makeLab makes the pool.
func makeLab(ctx context.Context, books *verbs.Ledger) {
	must(books.CreatePool(ctx, ledger.SystemActor("config"), capacity.Pool{
		Name: "lab", Provisioner: "sim", Type: "a100-4", Model: "a100", PerNode: 4, MemoryMiB: 81_920,
		Price: 8 * money.USD, MaxNodes: 2, Simulated: true,
		Timers: capacity.Timers{WarmHold: time.Minute, IdleRelease: time.Minute, MaxLease: 24 * time.Hour},
	}, learned.BootTimes{Prior50: time.Second, Prior95: time.Second}))
}

// must is the value of a step that does not fail.
func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
