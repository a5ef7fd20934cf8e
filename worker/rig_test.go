package worker_test

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/sqlledger"
	"github.com/forewarm/forewarm/ledger/verbs"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/sim"
	"github.com/forewarm/forewarm/worker"
	"github.com/forewarm/forewarm/worker/queue"
	"github.com/forewarm/forewarm/worker/queue/memqueue"
)

const deployment = "fw-test"

var start = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

// world is one installation with its cloud, on a clock the test owns.
type world struct {
	t      *testing.T
	clock  *clock.Manual
	ids    ids.Source // boot times depend on it: the same life is the same again
	store  ledger.Store
	ledger *verbs.Ledger
	cloud  *sim.Cloud
	spare  *sim.Cloud // the pool's second source; nil: it has none
	config ledger.Config
	actor  ledger.Actor
	marks  int // events that tell how far the journal can be read
	pool   ledger.Pool
	worker *worker.Worker
	seed   uint64
	death  *death                                                  // of the worker, if it is mortal
	dress  func(provisioners.Provisioner) provisioners.Provisioner // around the clouds of every worker; nil: as they are
	counts *obs.Metrics                                            // of every worker; nil: nothing is counted
	wall   clock.Clock                                             // replaces clock where it is set
}

// quickConfig are timers that make a life short without making it trivial.
func quickConfig() ledger.Config {
	return ledger.Config{CheckEvery: 30 * time.Second, VerifyEvery: 3 * time.Minute, SweepEvery: 5 * time.Minute}
}

// cloudConfig is a cloud that can say for two hours when a machine ended: the
// longest that these tests let pass between two looks. Of a machine that nobody
// asked about in time, the bill cannot be known.
func cloudConfig() sim.Config {
	return sim.Config{Name: "sim", Seed: 7, Terminating: 20 * time.Second, Remembered: 2 * time.Hour,
		Offers: []sim.Offer{{
			Type: "a100-8", Region: "sim-1", Model: "a100-80g", GPUs: 8, MemoryMiB: 81_920,
			Price: provisioners.Price(36 * money.USD), MinBilling: time.Minute,
			Boot: sim.Boot{P50: 90 * time.Second, P95: 100 * time.Second, Min: 80 * time.Second},
		}}}
}

// site is what an installation is made of.
type site struct {
	url    string
	ledger ledger.Config
	cloud  sim.Config
	spare  bool // the pool has a second source: the same machines, dearer
}

func usualSite() site {
	return site{url: "sqlite://:memory:", ledger: quickConfig(), cloud: cloudConfig()}
}

// newWorld returns an installation with one pool and no worker yet.
func newWorld(t *testing.T) *world {
	t.Helper()
	return buildWorld(t, usualSite())
}

func openWorld(t *testing.T, url string) *world {
	t.Helper()
	s := usualSite()
	s.url = url
	return buildWorld(t, s)
}

func buildWorld(t *testing.T, s site) *world {
	t.Helper()
	w := &world{t: t, clock: clock.NewManual(start), ids: &ids.Sequence{}, config: s.ledger}
	w.openStore(s.url)
	var err error
	w.cloud, err = sim.New(s.cloud, w.clock)
	require.NoError(t, err)
	if s.spare {
		s.cloud.Name, s.cloud.Offers = "spare", slices.Clone(s.cloud.Offers)
		s.cloud.Offers[0].Price = provisioners.Price(sparePrice)
		w.spare, err = sim.New(s.cloud, w.clock)
		require.NoError(t, err)
	}
	w.bootstrapTenant()
	return w
}

// sparePrice is so high that the first source is the better one again as soon
// as it may be asked, although it has refused something lately.
const sparePrice = 144 * money.USD

func (w *world) openStore(url string) {
	w.t.Helper()
	store, err := sqlledger.Open(w.t.Context(), sqlledger.Config{URL: url, Clock: cmp.Or[clock.Clock](w.wall, w.clock),
		Unsafe: true})
	require.NoError(w.t, err)
	w.t.Cleanup(func() { require.NoError(w.t, store.Close()) })
	require.NoError(w.t, store.Migrate(w.t.Context()))
	if reflect.ValueOf(w.config).IsZero() {
		w.config = quickConfig()
	}
	w.store, w.ledger = store, verbs.New(store, w.ids, w.config)
}

// reopenStore returns the same world as a new process finds it.
func (w *world) reopenStore(url string) *world {
	w.t.Helper()
	again := *w
	again.openStore(url)
	return &again
}

// bootstrapTenant makes the tenant and the pool.
func (w *world) bootstrapTenant() {
	w.t.Helper()
	ctx := w.t.Context()
	limits := quota.Limits{GPUs: 256, SpeculationPerDay: 1000 * money.USD}
	made, err := w.ledger.Bootstrap(ctx, "acme", limits,
		ledger.Key{ID: "key_operator", Name: "operator", Hash: []byte{1}})
	require.NoError(w.t, err)
	require.True(w.t, made)
	require.NoError(w.t, w.store.Read(ctx, func(r ledger.Reader) error {
		orgs, err := r.Organizations(ledger.Scope{All: true}, ledger.Page{Limit: 1})
		w.actor = ledger.Actor{KeyID: "key_operator", Kind: ledger.PersonKey, OrganizationID: orgs[0].ID,
			Role: ledger.Operator, Via: "api"}
		return err
	}))
	w.pool, err = w.ledger.CreatePool(ctx, w.actor, capacity.Pool{
		Name: "a100", Provisioner: "sim", Region: "sim-1", Type: "a100-8", Model: "a100-80g", PerNode: 8,
		MemoryMiB: 81_920,
		Price:     36 * money.USD, MinBilling: time.Minute, MaxNodes: 4, Simulated: true,
		Alternates: w.alternateOfferings(),
		Timers:     capacity.Timers{WarmHold: 5 * time.Minute, IdleRelease: time.Minute, MaxLease: 24 * time.Hour},
	}, learned.BootTimes{Prior50: 90 * time.Second, Prior95: 2 * time.Minute})
	require.NoError(w.t, err)
}

func (w *world) alternateOfferings() []capacity.Alternate {
	if w.spare == nil {
		return nil
	}
	return []capacity.Alternate{{
		Offering: capacity.Offering{Provisioner: w.spare.Name(), Region: "sim-1", Type: "a100-8", Price: sparePrice,
			MinBilling: time.Minute},
		Boot50: 90 * time.Second, Boot95: 3 * time.Minute,
	}}
}

// parts are what a worker is made of; nil fields are the world's own.
type parts struct {
	ledger       *verbs.Ledger
	queue        queue.Queue
	cloud, spare provisioners.Provisioner
}

// startWorker makes a worker, in place of the one before.
func (w *world) startWorker(p parts) *worker.Worker {
	w.t.Helper()
	if p.ledger == nil {
		p.ledger = w.ledger
	}
	if p.queue == nil {
		p.queue = memqueue.New(silentLogger())
	}
	if p.cloud == nil {
		p.cloud = w.cloud
	}
	provs := []provisioners.Provisioner{p.cloud}
	if w.spare != nil && p.spare == nil {
		p.spare = w.spare
	}
	if p.spare != nil {
		provs = append(provs, p.spare)
	}
	for i := range provs {
		if w.dress != nil {
			provs[i] = w.dress(provs[i])
		}
	}
	w.seed++
	var err error
	w.worker, err = worker.New(p.ledger, p.queue, provs, worker.Config{
		Deployment: deployment, Rand: rand.New(rand.NewPCG(1, w.seed)), Clock: w.clock, Logger: silentLogger(),
		Metrics: w.counts,
	})
	require.NoError(w.t, err)
	return w.worker
}

func silentLogger() *slog.Logger { return slog.New(slog.DiscardHandler) }

// stride is longer than a lease: what a worker that died has claimed is due
// again without a task that says when.
const stride = 11 * time.Second

// driveFor lets the time pass, doing all work when it is due.
func (w *world) driveFor(d time.Duration) {
	w.t.Helper()
	for end := w.clock.Now().Add(d); ; {
		w.doDueWork()
		now := w.clock.Now()
		if !now.Before(end) {
			return
		}
		next, err := w.ledger.NextTask(w.t.Context())
		require.NoError(w.t, err)
		to := end
		if w.readTasks()[ledger.TaskRunning] > 0 {
			to = earlierOf(to, now.Add(stride))
		}
		if next.After(now) {
			to = earlierOf(to, next)
		}
		w.clock.Set(to)
	}
}

func earlierOf(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// doDueWork does what is due now.
func (w *world) doDueWork() {
	w.t.Helper()
	for range 100 {
		handled, err := w.worker.Step(w.t.Context())
		if w.death != nil && w.death.hasCome() {
			w.death = nil
			w.startWorker(parts{})
			continue
		}
		require.NoError(w.t, err)
		if handled == 0 {
			return
		}
	}
	w.t.Fatal("work at one instant does not end")
}

// reserveNode books one whole node.
func (w *world) reserveNode(from, length time.Duration) reservation.Reservation {
	w.t.Helper()
	r, err := w.ledger.Reserve(w.t.Context(), w.actor, ledger.ReserveRequest{
		Pool: "a100", GPUs: 8, Class: reservation.Guaranteed,
		Window: windowFrom(w.clock.Now().Add(from), length),
	})
	require.NoError(w.t, err)
	return r
}

func windowFrom(from time.Time, length time.Duration) calendar.Interval {
	return calendar.Interval{Start: from, End: from.Add(length)}
}

func (w *world) readReservation(id string) reservation.Reservation {
	w.t.Helper()
	return readFrom(w, func(r ledger.Reader) (reservation.Reservation, error) {
		return r.Reservation(w.actor.Scope(),
			id)
	})
}

func (w *world) readAllocation(id string) allocation.Allocation {
	w.t.Helper()
	return readFrom(w, func(r ledger.Reader) (allocation.Allocation,
		error) {
		return r.Allocation(w.actor.Scope(), id)
	})
}

// readNodes returns all there ever were.
func (w *world) readNodes() []node.Node {
	w.t.Helper()
	return readFrom(w, func(r ledger.Reader) ([]node.Node, error) {
		return r.Nodes(ledger.NodeFilter{}, ledger.Page{Limit: 500})
	})
}

// nodeStates are the nodes' states in the order of their making.
func (w *world) nodeStates() []node.State {
	var all []node.State
	for _, n := range w.readNodes() {
		all = append(all, n.State())
	}
	return all
}

func (w *world) readTasks() map[ledger.TaskState]int {
	w.t.Helper()
	return readFrom(w, func(r ledger.Reader) (map[ledger.TaskState]int, error) { return r.Tasks() })
}

// eventTypes is the journal's types in order, whole: PostgreSQL keeps back what was
// committed while an older transaction is open, in any database of the server. A
// last event that can be read tells that all before it can.
func (w *world) eventTypes() []string {
	w.t.Helper()
	w.marks++
	mark, err := w.ledger.CreateOrganization(w.t.Context(), w.actor, fmt.Sprintf("mark %d", w.marks), quota.Limits{})
	require.NoError(w.t, err)
	var all []string
	var last int64
	require.Eventually(w.t, func() bool {
		for {
			events := readFrom(w, func(r ledger.Reader) ([]ledger.Event, error) {
				return r.Events(ledger.Scope{All: true}, ledger.EventFilter{After: last}, 500)
			})
			if len(events) == 0 {
				return false
			}
			for _, e := range events {
				last = e.Seq
				if e.Subject == mark.ID {
					return true
				}
				if !strings.HasPrefix(e.Message, "mark ") {
					all = append(all, e.Type)
				}
			}
		}
	}, time.Minute, 5*time.Millisecond, "the journal does not settle")
	return all
}

func readFrom[T any](w *world, read func(ledger.Reader) (T, error)) T {
	w.t.Helper()
	var out T
	require.NoError(w.t, w.store.Read(context.WithoutCancel(w.t.Context()), func(r ledger.Reader) (err error) {
		out, err = read(r)
		return err
	}))
	return out
}
