package ledgermetrics_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/ledgermetrics"
	"github.com/forewarm/forewarm/ledger/sqlledger"
	"github.com/forewarm/forewarm/ledger/verbs"
)

var begin = time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)

// recorder remembers what it was told.
type recorder struct {
	mu          sync.Mutex
	transitions map[string]int
	waits       []time.Duration
}

func (c *recorder) Transition(subject, event string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.transitions[subject+"."+event]++
}

func (c *recorder) Wait(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waits = append(c.waits, d)
}

type world struct {
	clock    *clock.Manual
	inner    *sqlledger.Store
	store    ledger.Store
	recorder *recorder
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{clock: clock.NewManual(begin), recorder: &recorder{transitions: map[string]int{}}}
	var err error
	w.inner, err = sqlledger.Open(t.Context(), sqlledger.Config{URL: "sqlite://:memory:", Clock: w.clock, Unsafe: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.inner.Close()) })
	require.NoError(t, w.inner.Migrate(t.Context()))
	w.store = ledgermetrics.Observe(w.inner, w.recorder)
	return w
}

func newEvent(kind, subject string) ledger.Event {
	return ledger.Event{At: begin, Type: kind, Subject: subject, Actor: "test", Message: "told"}
}

// What is given up was not done, what is tried again was done once, and what
// joins a transaction is told with it.
func TestOnlyWhatIsCommittedIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	gone := errors.New("given up")
	save := func(tx ledger.Tx, kind string) {
		require.NoError(t, tx.Save(ledger.Change{Events: []ledger.Event{newEvent(kind, "nod_1")}}))
	}
	require.ErrorIs(t, w.store.InTx(t.Context(), func(tx ledger.Tx) error {
		save(tx, "node.lost")
		return gone
	}), gone)
	require.Empty(t, w.recorder.transitions)
	require.NoError(t, w.store.InTx(t.Context(), func(tx ledger.Tx) error {
		save(tx, "node.ready")
		require.NoError(t, tx.Nested(func(joined ledger.Tx) error {
			save(joined, "node.draining")
			return nil
		}))
		require.Empty(t, w.recorder.transitions, "nothing is committed yet")
		return nil
	}))
	require.Equal(t, map[string]int{"node.ready": 1, "node.draining": 1}, w.recorder.transitions)
	require.Empty(t, w.recorder.waits)
}

// readLevels gathers what the collector shows, by name and labels.
func readLevels(t *testing.T, c prometheus.Collector) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(c))
	families, err := registry.Gather()
	require.NoError(t, err)
	all := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			name := family.GetName()
			for _, label := range metric.GetLabel() {
				name += " " + label.GetValue()
			}
			all[name] = metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
		}
	}
	return all
}

func TestLevelsOfAPoolAndItsTenants(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l := verbs.New(w.store, &ids.Sequence{}, ledger.Config{})
	_, err := l.Bootstrap(t.Context(), "acme", quota.Limits{GPUs: 12}, ledger.Key{Name: "first key", Hash: []byte("h")})
	require.NoError(t, err)
	var org ledger.Organization
	require.NoError(t, w.store.Read(t.Context(), func(r ledger.Reader) error {
		all, err := r.Organizations(ledger.Scope{All: true}, ledger.Page{})
		org = all[0]
		return err
	}))
	actor := ledger.Actor{OrganizationID: org.ID, KeyID: "key_1", Role: ledger.Operator}
	_, err = l.CreatePool(t.Context(), actor, capacity.Pool{
		Name: "lab", Provisioner: "sim", Region: "r", Type: "m", Model: "a100", PerNode: 4, MaxNodes: 2,
		OnlineShare: 500, Simulated: true,
		Timers: capacity.Timers{MaxLease: time.Hour, WarmHold: time.Minute, IdleRelease: time.Minute},
	}, learned.BootTimes{Prior50: time.Minute, Prior95: 2 * time.Minute})
	require.NoError(t, err)
	_, err = l.Allocate(t.Context(), actor, ledger.AllocateRequest{Pool: "lab", GPUs: 4, Lease: 30 * time.Minute})
	require.NoError(t, err)
	_, err = l.SubmitJobs(t.Context(), actor, ledger.JobCommand{Needs: ledger.AllocateRequest{Pool: "lab", GPUs: 1},
		Job: job.Job{Priority: job.Normal, Command: job.Command{Arguments: []string{"true"}}, MaxRuntime: time.Minute,
			Grace: time.Second}})
	require.NoError(t, err)

	collector := ledgermetrics.NewCollector(w.store, w.clock)
	got := readLevels(t, collector)
	for name, want := range map[string]float64{
		"forewarm_ledger_up": 1, "forewarm_pool_gpus_limit lab": 8, "forewarm_queue_length lab allocations": 1,
		"forewarm_queue_length lab waitlist": 0, "forewarm_queue_length lab jobs": 1, "forewarm_jobs lab pending": 1,
		"forewarm_jobs lab running":        0,
		"forewarm_allocations lab pending": 1, "forewarm_gpus lab free": 0,
		"forewarm_quota_gpus_used acme": 4, "forewarm_quota_gpus_limit acme": 12,
		"forewarm_workload_gpus_used lab online": 4, "forewarm_workload_gpus_limit lab batch": 4,
	} {
		require.Contains(t, got, name, slices.Sorted(maps.Keys(got)))
		require.InDelta(t, want, got[name], 0, name)
	}

	// What was read is served again for a while, and then read anew.
	_, err = l.Allocate(t.Context(), actor, ledger.AllocateRequest{Pool: "lab", GPUs: 1, Lease: 30 * time.Minute,
		Workload: capacity.Batch})
	require.NoError(t, err)
	require.Equal(t, got, readLevels(t, collector))
	w.clock.Advance(5 * time.Second)
	got = readLevels(t, collector)
	require.InDelta(t, 5, got["forewarm_quota_gpus_used acme"], 0)
	require.InDelta(t, 5, got["forewarm_task_lag_seconds"], 0, "nobody does the work")
	require.Equal(t, 2, w.recorder.transitions["allocation.pending"])

	require.InDelta(t, 0, got["forewarm_pool_recovering lab"], 0)
	_, err = l.BeginRecovery(t.Context(), actor, "", "a test")
	require.NoError(t, err)
	w.clock.Advance(5 * time.Second)
	require.InDelta(t, 1, readLevels(t, collector)["forewarm_pool_recovering lab"], 0)

	require.NoError(t, w.inner.Close())
	w.clock.Advance(5 * time.Second)
	require.Equal(t, map[string]float64{"forewarm_ledger_up": 0}, readLevels(t, collector))
}

func TestWaitingShowsBothKinds(t *testing.T) {
	t.Parallel()
	got := readLevels(t, ledgermetrics.NewWaiting(func() (turn, row int) { return 2, 3 }))
	require.Equal(t, map[string]float64{"forewarm_changes_waiting turn": 2, "forewarm_changes_waiting row": 3}, got)
}

// GPUs that are kept for whoever waits are not free: the same words and counts as
// in the API.
func TestBookedGPUsAreNotFree(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l := verbs.New(w.store, &ids.Sequence{}, ledger.Config{})
	_, err := l.Bootstrap(t.Context(), "acme", quota.Limits{GPUs: 12}, ledger.Key{Name: "first key", Hash: []byte("h")})
	require.NoError(t, err)
	var actor ledger.Actor
	require.NoError(t, w.store.Read(t.Context(), func(r ledger.Reader) error {
		all, err := r.Organizations(ledger.Scope{All: true}, ledger.Page{})
		actor = ledger.Actor{OrganizationID: all[0].ID, KeyID: "key_1", Role: ledger.Operator}
		return err
	}))
	pool, err := l.CreatePool(t.Context(), actor, capacity.Pool{
		Name: "lab", Provisioner: "sim", Region: "r", Type: "m", Model: "a100", PerNode: 4, MaxNodes: 2,
		Simulated: true,
		Timers:    capacity.Timers{MaxLease: time.Hour, WarmHold: time.Minute, IdleRelease: time.Minute},
	}, learned.BootTimes{Prior50: time.Minute, Prior95: 2 * time.Minute})
	require.NoError(t, err)
	_, err = l.Allocate(t.Context(), actor, ledger.AllocateRequest{Pool: "lab", GPUs: 6, Lease: 30 * time.Minute})
	require.NoError(t, err)
	up := node.New("nod_1", pool.ID, 0, 1, begin)
	up.Token = "token"
	for i := range 4 {
		up.Devices = append(up.Devices, capacity.Device{UUID: fmt.Sprint("GPU-", i), Index: i, Model: "a100"})
	}
	for _, e := range []node.Event{node.Provision, node.Boot, node.BecomeReady} {
		up, err = up.Apply(e, "", begin)
		require.NoError(t, err)
	}
	require.NoError(t, w.store.InTx(t.Context(), func(tx ledger.Tx) error {
		return tx.Save(ledger.Change{Nodes: []node.Node{up}})
	}))
	got := readLevels(t, ledgermetrics.NewCollector(w.store, w.clock))
	var state ledger.PoolState
	require.NoError(t, w.store.Read(t.Context(), func(r ledger.Reader) error {
		state, err = r.PoolState(pool.ID)
		return err
	}))
	shown := ledger.CountDevices(state.Devices(begin))
	require.Positive(t, shown.Booked)
	for name, want := range map[string]int{"booked": shown.Booked, "free": shown.Free, "held": shown.Held,
		"coming": shown.Coming} {
		require.InDelta(t, want, got["forewarm_gpus lab "+name], 0, name)
	}
}

// A cluster that cannot be looked at shows for how long.
func TestBlindnessShows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l := verbs.New(w.store, &ids.Sequence{}, ledger.Config{})
	_, err := l.Bootstrap(t.Context(), "acme", quota.Limits{GPUs: 12}, ledger.Key{Name: "first key", Hash: []byte("h")})
	require.NoError(t, err)
	_, err = l.CreatePool(t.Context(), ledger.SystemActor("test"), capacity.Pool{Name: "obs", Provisioner: "cluster",
		Type: "m", Model: "a100", PerNode: 4, MaxNodes: 2, Observed: true, Timers: capacity.Timers{MaxLease: time.Hour},
	}, learned.BootTimes{Prior50: time.Minute, Prior95: time.Minute})
	require.NoError(t, err)
	collector := ledgermetrics.NewCollector(w.store, w.clock)
	require.Zero(t, readLevels(t, collector)["forewarm_observation_blind_seconds cluster"])
	require.NoError(t, l.ReportBlind(t.Context(), "cluster"))
	w.clock.Advance(time.Minute)
	require.InDelta(t, 60, readLevels(t, collector)["forewarm_observation_blind_seconds cluster"], 0)
}
