package reconcile_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/sqlledger"
	"github.com/forewarm/forewarm/ledger/verbs"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/sim"
	"github.com/forewarm/forewarm/worker/reconcile"
)

var start = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

// site is a ledger with one pool of up to 40 nodes, a cloud, and a sweeper.
type site struct {
	t       *testing.T
	clock   *clock.Manual
	ids     ids.Source
	store   ledger.Store
	ledger  *verbs.Ledger
	cloud   *sim.Cloud
	pool    ledger.Pool
	log     *bytes.Buffer
	sweeper *reconcile.Sweeper
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, clock: clock.NewManual(start), ids: &ids.Sequence{}, log: &bytes.Buffer{}}
	store, err := sqlledger.Open(t.Context(), sqlledger.Config{URL: "sqlite://:memory:", Clock: s.clock, Unsafe: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	require.NoError(t, store.Migrate(t.Context()))
	s.store, s.ledger = store, verbs.New(store, s.ids, ledger.Config{})
	s.cloud, err = sim.New(sim.Config{Name: "sim", Seed: 7}, s.clock)
	require.NoError(t, err)
	s.bootstrapTenant()
	s.sweeper, err = reconcile.New(s.ledger, map[string]provisioners.Provisioner{"sim": s.cloud}, reconcile.Config{
		Deployment: "ours", Logger: slog.New(slog.NewTextHandler(s.log, nil)),
	})
	require.NoError(t, err)
	return s
}

func (s *site) bootstrapTenant() {
	s.t.Helper()
	ctx := s.t.Context()
	_, err := s.ledger.Bootstrap(ctx, "acme", quota.Limits{GPUs: 1000},
		ledger.Key{ID: "key_operator", Name: "operator", Hash: []byte{1}})
	require.NoError(s.t, err)
	s.pool, err = s.ledger.CreatePool(ctx, ledger.SystemActor("test"), capacity.Pool{
		Name: "a100", Provisioner: "sim", Region: "sim-1", Type: "sim-a100-8", Model: "a100-80g", PerNode: 8,
		MaxNodes: 40, Price: 20 * money.USD, MinBilling: time.Minute,
		Timers: capacity.Timers{MaxLease: time.Hour},
	}, learned.BootTimes{Prior50: time.Minute, Prior95: time.Minute})
	require.NoError(s.t, err)
}

// createInstance makes one at the cloud.
func (s *site) createInstance(owner, nodeID, token string) provisioners.Instance {
	s.t.Helper()
	made, err := s.cloud.Create(s.t.Context(), token,
		provisioners.Spec{Type: "sim-a100-8", Region: "sim-1", Owner: owner, NodeID: nodeID})
	require.NoError(s.t, err)
	return made
}

// createNode writes one into the ledger, as far along as the events say, with the task
// its state needs.
func (s *site) createNode(slot int, providerID string, events ...node.Event) node.Node {
	s.t.Helper()
	n := node.New(s.ids.New(ids.Node), s.pool.ID, slot, 1, s.clock.Now())
	n.Offering = s.pool.Offering()
	for _, e := range events {
		var err error
		n, err = n.Apply(e, "test", s.clock.Now())
		require.NoError(s.t, err)
	}
	n.ProviderID = providerID
	require.NoError(s.t, s.store.InTx(s.t.Context(), func(tx ledger.Tx) error {
		return tx.Save(ledger.Change{Nodes: []node.Node{n}})
	}))
	return n
}

// createOverNode returns a node that the ledger knows and that is over.
func (s *site) createOverNode() string { return s.createNode(39, "", node.Provision, node.Refuse).ID }

func (s *site) sweepOnce() reconcile.Result {
	s.t.Helper()
	result, err := s.sweeper.Sweep(s.t.Context(), s.cloud)
	require.NoError(s.t, err)
	return result
}

// sweepFor sweeps every minute for d.
func (s *site) sweepFor(d time.Duration) {
	s.t.Helper()
	for range d / time.Minute {
		s.clock.Advance(time.Minute)
		s.sweepOnce()
	}
}

func (s *site) phaseOf(i provisioners.Instance) provisioners.Phase {
	s.t.Helper()
	found, err := s.cloud.Get(s.t.Context(), i.ID)
	require.NoError(s.t, err)
	return found.Phase
}

func (s *site) isLive(i provisioners.Instance) bool {
	s.t.Helper()
	p := s.phaseOf(i)
	return p == provisioners.Booting || p == provisioners.Running
}

var upAndRunning = []node.Event{node.Provision, node.Boot, node.BecomeReady}

func TestAMachineWithoutANodeIsEnded(t *testing.T) {
	t.Parallel()
	for name, orphan := range map[string]func(*site) provisioners.Instance{
		"second machine": func(s *site) provisioners.Instance {
			n := s.createNode(0, "sim-another", upAndRunning...)
			return s.createInstance("ours", n.ID, "t")
		},
		"node that is over": func(s *site) provisioners.Instance {
			n := s.createNode(0, "", node.Provision, node.Refuse)
			return s.createInstance("ours", n.ID, "t")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			i := orphan(s)
			s.sweepFor(9 * time.Minute)
			require.True(t, s.isLive(i), "ended before its grace")
			s.sweepFor(2 * time.Minute)
			require.False(t, s.isLive(i))
			require.Contains(t, s.log.String(), i.ID)
		})
	}
}

func TestOneSightingIsNotEnough(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	i := s.createInstance("ours", s.createOverNode(), "t")
	s.clock.Advance(time.Hour)
	s.sweepOnce()
	s.clock.Advance(59 * time.Second)
	require.Equal(t, reconcile.Result{Complete: true, Orphans: []string{i.ID}}, s.sweepOnce())
	require.True(t, s.isLive(i))
	s.clock.Advance(time.Second)
	require.Equal(t, []string{i.ID}, s.sweepOnce().Ended)
	require.False(t, s.isLive(i))
}

// A cut-off list adds nothing to the evidence and takes nothing back.
func TestAnIncompleteListConcludesNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	i := s.createInstance("ours", s.createOverNode(), "t")
	s.clock.Advance(time.Hour)
	s.sweepOnce()
	require.NoError(t, s.cloud.Inject(sim.Fault{Op: sim.OpList, Effect: sim.Truncate, Times: 1}))
	s.clock.Advance(time.Minute)
	require.Equal(t, reconcile.Result{}, s.sweepOnce(), "something was concluded")
	s.clock.Advance(time.Minute)
	require.Equal(t, []string{i.ID}, s.sweepOnce().Ended)
}

func TestWhatIsOwnedOrForeignIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	foreign := s.createInstance("theirs", "nod_unknown", "t1")
	n := s.createNode(0, "", upAndRunning...)
	owned := s.createInstance("ours", n.ID, "t2")
	s.assignInstance(n, owned)
	unanswered := s.createNode(1, "", node.Provision)
	coming := s.createInstance("ours", unanswered.ID, "t3")
	s.sweepFor(time.Hour)
	require.True(t, s.isLive(foreign))
	require.True(t, s.isLive(owned))
	require.True(t, s.isLive(coming))
	require.NotContains(t, s.log.String(), "ended")
}

// assignInstance writes down which machine is the node's.
func (s *site) assignInstance(n node.Node, i provisioners.Instance) {
	s.t.Helper()
	n.ProviderID, n.Version = i.ID, 1
	require.NoError(s.t, s.store.InTx(s.t.Context(), func(tx ledger.Tx) error {
		return tx.Save(ledger.Change{Nodes: []node.Node{n}})
	}))
}

// The last look before the end is at the node itself: here it is of a pool that
// was configured with another name for the same provider.
func TestTheLastLookSavesANodeOfAnotherName(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	other, err := s.ledger.CreatePool(t.Context(), ledger.SystemActor("test"), capacity.Pool{
		Name: "other", Provisioner: "sim-2", PerNode: 8, MaxNodes: 1, Timers: capacity.Timers{MaxLease: time.Hour},
	}, learned.BootTimes{})
	require.NoError(t, err)
	s.pool = other
	n := s.createNode(0, "", upAndRunning...)
	i := s.createInstance("ours", n.ID, "t")
	s.assignInstance(n, i)
	s.sweepFor(time.Hour)
	require.True(t, s.isLive(i))
	require.NotContains(t, s.log.String(), "ended")
}

// A cut-off list or a wrong database must not end everything: at most three
// machines, or a tenth, in one sweep, and an alarm.
func TestASweepEndsFewMachines(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ machines, perSweep int }{{3, 3}, {9, 3}, {40, 4}} {
		t.Run(fmt.Sprint(tc.machines), func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			over := s.createOverNode()
			for i := range tc.machines {
				s.createInstance("ours", over, fmt.Sprint("t", i))
			}
			s.clock.Advance(time.Hour)
			s.sweepOnce()
			s.clock.Advance(time.Minute)
			result := s.sweepOnce()
			require.Len(t, result.Ended, tc.perSweep)
			require.Equal(t, tc.machines > tc.perSweep, result.Capped)
			if result.Capped {
				require.Contains(t, s.log.String(), "level=ERROR")
			}
		})
	}
}

// Machines that cannot be ended are tried again, after those that may be.
func TestAMachineThatCannotBeEndedKeepsNoOther(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	over := s.createOverNode()
	for i := range 9 {
		s.createInstance("ours", over, fmt.Sprint("t", i))
		s.clock.Advance(time.Second)
	}
	s.clock.Advance(time.Hour)
	s.sweepOnce()
	for _, effect := range []sim.Fault{
		{Op: sim.OpDelete, Effect: sim.Ignore},
		{Op: sim.OpDelete, Effect: sim.FailBefore, Kind: provisioners.KindDenied},
	} {
		effect.Times = 3
		require.NoError(t, s.cloud.Inject(effect))
		s.clock.Advance(time.Minute)
		_, _ = s.sweeper.Sweep(t.Context(), s.cloud)
	}
	s.clock.Advance(time.Minute)
	require.Len(t, s.sweepOnce().Ended, 3)
	s.sweepFor(5 * time.Minute)
	require.Empty(t, s.cloud.LivePerNode())
	require.Contains(t, s.log.String(), "ended a machine")
}

// A list that lacks every machine, and says that it is complete, ends nothing
// and gives up no node.
func TestAnEmptyListConcludesNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	n := s.createNode(0, "sim-gone", upAndRunning...)
	s.sweepFor(time.Hour)
	var after node.Node
	require.NoError(t, s.store.Read(t.Context(), func(r ledger.Reader) (err error) {
		after, err = r.Node(n.ID)
		return err
	}))
	require.Equal(t, node.Ready, after.State())
}

func TestANodeWithoutATaskGetsOne(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		events []node.Event
		kind   string
	}{
		{nil, ledger.TaskCreateNode},
		{[]node.Event{node.Provision}, ledger.TaskCreateNode},
		{[]node.Event{node.Provision, node.Boot}, ledger.TaskCheckNode},
		{upAndRunning, ledger.TaskCheckNode},
		{append(upAndRunning[:3:3], node.Drain), ledger.TaskCheckNode},
		{append(upAndRunning[:3:3], node.Quarantine), ledger.TaskCheckNode},
		{append(upAndRunning[:3:3], node.Lose), ""},
		{append(upAndRunning[:3:3], node.Drain, node.Retire), ledger.TaskDeleteNode},
		{append(upAndRunning[:3:3], node.Drain, node.Retire, node.GiveUp), ledger.TaskDeleteNode},
		{append(upAndRunning[:3:3], node.Drain, node.Retire, node.Confirm), ""},
	} {
		t.Run(fmt.Sprint(tc.events), func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.createNode(0, "sim-1", tc.events...)
			want := 0
			if tc.kind != "" {
				want = 1
			}
			require.Equal(t, want, s.sweepOnce().Requeued)
			require.Zero(t, s.sweepOnce().Requeued, "asked twice")
			require.Equal(t, want, s.countDue(tc.kind))
		})
	}
}

// countDue counts the tasks of a kind that wait.
func (s *site) countDue(kind string) int {
	s.t.Helper()
	rows, err := s.ledger.Dispatch(s.t.Context(), 100, time.Second)
	require.NoError(s.t, err)
	n := 0
	for _, row := range rows {
		if row.Kind == kind {
			n++
		}
	}
	return n
}

func TestTheReaperFreesTheTasksOfSilentWorkers(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	reaper := reconcile.NewReaper(s.ledger, 0, slog.New(slog.DiscardHandler))
	rows, err := s.ledger.Dispatch(t.Context(), 100, time.Second)
	require.NoError(t, err)
	_, err = s.ledger.ClaimTask(t.Context(), rows[0].ID, rows[0].Attempt, 10*time.Second)
	require.NoError(t, err)
	for _, tc := range []struct {
		wait  time.Duration
		freed int
	}{{0, 0}, {10 * time.Second, 0}, {time.Microsecond, 1}, {time.Hour, 0}} {
		s.clock.Advance(tc.wait)
		freed, err := reaper.Step(t.Context())
		require.NoError(t, err)
		require.Equal(t, tc.freed, freed)
	}
}

func TestASweeperNeedsADeployment(t *testing.T) {
	t.Parallel()
	_, err := reconcile.New(nil, nil, reconcile.Config{})
	require.ErrorContains(t, err, "deployment")
}
