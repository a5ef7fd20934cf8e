package proof_test

import (
	"context"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/internal/invariants"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/sqlledger"
	"github.com/forewarm/forewarm/ledger/verbs"
)

// monday is when every world with a clock of its own begins.
var monday = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

const (
	boot    = 5 * time.Minute
	guard   = time.Minute
	perNode = 2
	slots   = 4
)

// world is a ledger with one pool, whose machines the test provides: they take a
// boot to come up. Time passes when it is told to.
type world struct {
	t      rapid.TB
	ctx    context.Context
	store  *sqlledger.Store
	ledger *verbs.Ledger
	now    time.Time
	set    func(time.Time)
	pool   ledger.Pool
	actors []ledger.Actor
	up     map[string]time.Time // machines by node: when they will be up

	look func(ledger.Guard) error // reports what an observed cluster does; nil: none is

	promised []string // ids of reservations that were acknowledged
	held     []string // and of allocations
}

// newWorld makes a world in an empty database, on the clock that set moves.
//
//nolint:revive // the test comes first
func newWorld(t rapid.TB, ctx context.Context, config sqlledger.Config, set func(time.Time)) *world {
	t.Helper()
	w := openWorld(t, ctx, config, set)
	w.setTime(monday)
	w.ledger = verbs.New(w.store, &ids.Sequence{}, settings)
	w.bootstrapTenants()
	return w
}

// settings are those of the worlds' ledgers.
var settings = ledger.Config{
	Policy: plan.Policy{Guard: guard}, CheckEvery: boot, VerifyEvery: 24 * time.Hour, ConfirmGone: time.Second,
	ObserveEvery: 6 * boot,
}

// openWorld opens a database and brings its tables up to date.
//
//nolint:revive // the test comes first
func openWorld(t rapid.TB, ctx context.Context, config sqlledger.Config, set func(time.Time)) *world {
	t.Helper()
	w := &world{t: t, ctx: ctx, set: set, up: map[string]time.Time{}}
	var err error
	w.store, err = sqlledger.Open(ctx, config)
	require.NoError(t, err)
	require.NoError(t, w.store.Migrate(ctx))
	return w
}

// inMemory is a world on SQLite in memory.
func inMemory(t rapid.TB, ctx context.Context) *world { //nolint:revive // the test comes first
	t.Helper()
	c := clock.NewManual(monday)
	return newWorld(t, ctx, sqlledger.Config{URL: "sqlite://:memory:", Clock: c, Unsafe: true}, c.Set)
}

func (w *world) closeStore() { require.NoError(w.t, w.store.Close()) }

// bootstrapTenants makes the pool, and two organizations with a person and an agent each,
// the second of which may hold less than the pool has.
func (w *world) bootstrapTenants() {
	w.t.Helper()
	operator := ledger.SystemActor("test")
	var err error
	w.pool, err = w.ledger.CreatePool(w.ctx, operator, capacity.Pool{
		Name: "lab", Provisioner: "sim", Type: "gpu-2", Model: "h100", PerNode: perNode, MemoryMiB: 81920,
		Price: 2 * money.USD, MaxNodes: slots,
		Simulated: true, Timers: capacity.Timers{WarmHold: 10 * time.Minute, IdleRelease: 10 * time.Minute,
			MaxLease: 24 * time.Hour},
	}, learned.BootTimes{Prior50: boot, Prior95: boot})
	require.NoError(w.t, err)
	for _, o := range []struct {
		name string
		gpus int
	}{{"wide", 100}, {"narrow", 5}} {
		org, err := w.ledger.CreateOrganization(w.ctx, operator, o.name,
			quota.Limits{GPUs: o.gpus, SpeculationPerDay: 40 * money.USD})
		require.NoError(w.t, err)
		w.addActors(org)
	}
}

// addActors adds a person and an agent of an organization.
func (w *world) addActors(org ledger.Organization) {
	person := ledger.Actor{KeyID: "person of " + org.Name, Kind: ledger.PersonKey, OrganizationID: org.ID,
		Role: ledger.Member, Via: "api"}
	agent := person
	agent.KeyID, agent.Kind = "agent of "+org.Name, ledger.AgentKey
	agent.Caps = quota.Caps{MaxGPUs: 4, MaxPerDay: 30 * money.USD, MaxLead: 12 * time.Hour, MaxWindow: 6 * time.Hour}
	w.actors = append(w.actors, person, agent)
}

// setTime moves the world's time.
func (w *world) setTime(t time.Time) {
	w.now = t
	w.set(t)
}

// passTime lets time go by, doing all work when it is due.
func (w *world) passTime(d time.Duration) {
	w.t.Helper()
	end := w.now.Add(d)
	for w.doDueWork(); ; w.doDueWork() {
		next, err := w.ledger.NextTask(w.ctx)
		require.NoError(w.t, err)
		if next.IsZero() || next.After(end) {
			w.setTime(end)
			return
		}
		if next.After(w.now) {
			w.setTime(next)
		}
	}
}

// doDueWork does what is due now.
func (w *world) doDueWork() {
	w.t.Helper()
	for range 100 {
		due, err := w.ledger.Dispatch(w.ctx, 100, time.Minute)
		require.NoError(w.t, err)
		if len(due) == 0 {
			return
		}
		for _, task := range due {
			task, err = w.ledger.ClaimTask(w.ctx, task.ID, task.Attempt, time.Hour)
			require.NoError(w.t, err)
			require.NoError(w.t, w.handleTask(task), task.Kind)
		}
	}
	require.Fail(w.t, "the work does not end")
}

func (w *world) handleTask(task ledger.Task) error {
	g := ledger.Guard{TaskID: task.ID, Fence: task.Fence}
	switch task.Kind {
	case ledger.TaskPlan:
		waiting, err := w.ledger.Plan(w.ctx, g, task.Subject)
		for _, id := range waiting.Waitlisted {
			require.NoError(w.t, w.ledger.Promote(w.ctx, id))
		}
		return err
	case ledger.TaskCreateNode:
		intent, err := w.ledger.BeginCreate(w.ctx, g, task.Subject)
		if err != nil || !intent.Wanted {
			return err
		}
		w.up[task.Subject] = w.now.Add(boot)
		return w.ledger.ReportCreated(w.ctx, g, task.Subject, ledger.Instance{ProviderID: "machine of " + task.Subject})
	case ledger.TaskCheckNode:
		return w.checkNode(g, task.Subject)
	case ledger.TaskDeleteNode:
		if _, _, wanted, err := w.ledger.BeginDelete(w.ctx, g, task.Subject); err != nil || !wanted {
			return err
		}
		delete(w.up, task.Subject)
		return w.ledger.ReportAbsent(w.ctx, g, task.Subject, time.Time{})
	case ledger.TaskObserve:
		return w.look(g)
	case ledger.TaskKeep:
		return w.ledger.RetryTask(w.ctx, g, time.Minute, "")
	default:
		return w.ledger.FinishTask(w.ctx, g)
	}
}

func (w *world) checkNode(g ledger.Guard, nodeID string) error {
	if _, _, wanted, err := w.ledger.BeginCheck(w.ctx, g, nodeID); err != nil || !wanted {
		return err
	}
	switch at, there := w.up[nodeID]; {
	case !there:
		return w.ledger.ReportMissing(w.ctx, g, nodeID, ledger.Loss{})
	case w.now.Before(at):
		return w.ledger.ReportBooting(w.ctx, g, nodeID)
	}
	machine := ledger.Instance{}
	for i := range perNode {
		machine.Devices = append(machine.Devices, capacity.Device{UUID: nodeID + "-" + string(rune('0'+i)), Index: i,
			Model: "h100", MemoryMiB: 81920})
	}
	return w.ledger.ReportUp(w.ctx, g, nodeID, machine)
}

// readRows reads the world; with history also what is over.
func (w *world) readRows(history bool) (rows invariants.Rows) {
	w.t.Helper()
	require.NoError(w.t, w.store.Read(w.ctx, func(r ledger.Reader) (err error) {
		rows, err = invariants.Gather(r, history)
		return err
	}))
	return rows
}

// TestWorldGoesRound: the world is able to do what the histories ask of it.
func TestWorldGoesRound(t *testing.T) {
	t.Parallel()
	w := inMemory(t, t.Context())
	defer w.closeStore()
	a, err := w.ledger.Allocate(t.Context(), w.actors[0],
		ledger.AllocateRequest{Pool: "lab", GPUs: 3, Lease: time.Hour})
	require.NoError(t, err)
	require.Equal(t, "pending", string(a.State()))
	w.passTime(boot)
	rows := w.readRows(true)
	require.Equal(t, "active", string(rows.Pools[0].Allocations[0].State()))
	w.passTime(3 * time.Hour)
	rows = w.readRows(true)
	require.Empty(t, rows.Pools[0].Nodes, "idle nodes go")
	require.Len(t, rows.OverAllocations, 1)
	require.Empty(t, invariants.Check(rows))
}
