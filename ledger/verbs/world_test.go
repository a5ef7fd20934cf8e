package verbs_test

import (
	"cmp"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/sqlledger"
	"github.com/forewarm/forewarm/ledger/verbs"
)

const (
	boot  = 5 * time.Minute
	guard = time.Minute
)

// monday is when every world begins.
var monday = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

// world is a ledger over SQLite with one pool, lab, of four nodes of two GPUs,
// whose machines the test itself provides: they take a boot to come up.
type world struct {
	*testing.T
	clock  *clock.Manual
	store  *sqlledger.Store
	ledger *verbs.Ledger
	ids    ids.Sequence
	pool   ledger.Pool
	up     map[string]time.Time // machines by node: when they will be up
	lost   ledger.Loss          // what the provider says of a machine that is not there
	look   time.Duration        // how soon it wants machines looked at again
	booted time.Duration        // how long its next machines take to come up; zero: a boot
	// soldOut is set while the provider has nothing.
	soldOut    bool
	scheduling ledger.SchedulingConfig
	// awaitDaemons is Config.AwaitDaemons from the next restartedLedger on.
	awaitDaemons bool
	joined       map[string]ledger.Actor // daemons, by their nodes
	silent       map[string]bool         // nodes whose daemons say nothing
	cycles       *replayer
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, clock: clock.NewManual(monday), up: map[string]time.Time{}, cycles: &replayer{T: t}}
	var err error
	w.store, err = sqlledger.Open(t.Context(), sqlledger.Config{URL: "sqlite://:memory:", Clock: w.clock, Unsafe: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.store.Close()) })
	require.NoError(t, w.store.Migrate(t.Context()))
	w.ledger = w.restartedLedger()
	w.pool, err = w.ledger.CreatePool(t.Context(), operator, capacity.Pool{
		Name: "lab", Provisioner: "sim", Type: "gpu-2", Model: "h100", PerNode: 2, MemoryMiB: 81920,
		Price:    2 * money.USD,
		MaxNodes: 4, Simulated: true,
		Timers: capacity.Timers{WarmHold: 10 * time.Minute, IdleRelease: 10 * time.Minute, MaxLease: 24 * time.Hour},
	}, learned.BootTimes{Prior50: boot, Prior95: boot})
	require.NoError(t, err)
	return w
}

// restartedLedger is the ledger of another process: it remembers nothing.
func (w *world) restartedLedger() *verbs.Ledger {
	return verbs.New(w.store, &w.ids, ledger.Config{
		Policy: plan.Policy{Guard: guard}, CheckEvery: boot, VerifyEvery: 24 * time.Hour, ConfirmGone: time.Second,
		Ahead:        8 * 24 * time.Hour,
		AwaitDaemons: w.awaitDaemons,
		Scheduling:   ledger.NewLiveScheduling(w.scheduling),
		Cycles:       w.cycles,
		BatchTime:    time.Hour, // by the machine's clock: a slow one decides on all of a batch, too
	})
}

var operator = ledger.SystemActor("test")

// newPerson makes an organization and returns a member of it.
func (w *world) newPerson(name string) ledger.Actor {
	return w.newLimitedPerson(name, quota.Limits{GPUs: 100, SpeculationPerDay: 1000 * money.USD})
}

func (w *world) newLimitedPerson(name string, limits quota.Limits) ledger.Actor {
	w.Helper()
	org, err := w.ledger.CreateOrganization(w.Context(), operator, name, limits)
	require.NoError(w, err)
	return ledger.Actor{KeyID: "key of " + name, Kind: ledger.PersonKey, OrganizationID: org.ID, Role: ledger.Member,
		Via: "api"}
}

// agentBeside returns an agent's key beside a person's.
func agentBeside(of ledger.Actor, name string) ledger.Actor {
	of.KeyID, of.Kind = name, ledger.AgentKey
	of.Caps = quota.Caps{MaxGPUs: 8, MaxPerDay: 1000 * money.USD, MaxLead: 48 * time.Hour, MaxWindow: 24 * time.Hour}
	return of
}

// windowAfter is a window that begins and ends a while from now.
func (w *world) windowAfter(from, to time.Duration) calendar.Interval {
	return calendar.Interval{Start: w.clock.Now().Add(from), End: w.clock.Now().Add(to)}
}

// pass lets time go by, doing all work when it is due.
func (w *world) pass(d time.Duration) {
	w.Helper()
	end := w.clock.Now().Add(d)
	for w.doDueWork(); ; w.doDueWork() {
		next, err := w.ledger.NextTask(w.Context())
		require.NoError(w, err)
		if next.IsZero() || next.After(end) {
			w.clock.Set(end)
			w.beatAll()
			return
		}
		w.clock.Set(next)
		w.beatAll()
	}
}

// beatAll has the daemons of joinedDaemons say that they are there, but for those of silent nodes.
func (w *world) beatAll() {
	w.Helper()
	if len(w.joined) == 0 {
		return
	}
	for _, n := range w.readNodes(node.Ready) {
		if daemon, ok := w.joined[n.ID]; ok && !w.silent[n.ID] {
			w.beat(daemon)
		}
	}
}

func (w *world) beat(daemon ledger.Actor) {
	w.Helper()
	_, err := w.ledger.RecordBeat(w.Context(), daemon, ledger.Beat{BootID: "boot", Epoch: 1, Look: []byte("{}")})
	require.NoError(w, err)
}

// doDueWork does what is due now.
func (w *world) doDueWork() {
	w.Helper()
	for range 100 {
		due, err := w.ledger.Dispatch(w.Context(), 100, time.Minute)
		require.NoError(w, err)
		if len(due) == 0 {
			return
		}
		for _, task := range due {
			task, err = w.ledger.ClaimTask(w.Context(), task.ID, task.Attempt, time.Hour)
			require.NoError(w, err)
			require.NoError(w, w.handleTask(task), task.Kind)
		}
	}
	require.Fail(w, "the work does not end")
}

func (w *world) handleTask(task ledger.Task) error {
	ctx, g := w.Context(), ledger.Guard{TaskID: task.ID, Fence: task.Fence}
	switch task.Kind {
	case ledger.TaskPlan:
		waiting, err := w.ledger.Plan(ctx, g, task.Subject)
		for _, id := range waiting.Waitlisted {
			require.NoError(w, w.ledger.Promote(ctx, id))
		}
		require.NoError(w, w.ledger.ScheduleJobs(ctx, task.Subject))
		return err
	case ledger.TaskSchedules:
		return w.ledger.Materialise(ctx, g)
	case ledger.TaskCreateNode:
		intent, err := w.ledger.BeginCreate(ctx, g, task.Subject)
		if err != nil || !intent.Wanted {
			return err
		}
		if w.soldOut {
			return w.ledger.ReportRefused(ctx, g, task.Subject, "no_capacity", "nothing left", true)
		}
		w.up[task.Subject] = w.clock.Now().Add(cmp.Or(w.booted, boot))
		return w.ledger.ReportCreated(ctx, g, task.Subject, ledger.Instance{ProviderID: "machine of " + task.Subject})
	case ledger.TaskCheckNode:
		return w.checkNode(ctx, g, task.Subject)
	case ledger.TaskKeep:
		return w.ledger.RetryTask(ctx, g, time.Minute, "")
	default:
		if _, _, wanted, err := w.ledger.BeginDelete(ctx, g, task.Subject); err != nil || !wanted {
			return err
		}
		delete(w.up, task.Subject)
		return w.ledger.ReportAbsent(ctx, g, task.Subject, time.Time{})
	}
}

func (w *world) checkNode(ctx context.Context, g ledger.Guard, nodeID string) error {
	if _, _, wanted, err := w.ledger.BeginCheck(ctx, g, nodeID); err != nil || !wanted {
		return err
	}
	switch at, there := w.up[nodeID]; {
	case !there:
		return w.ledger.ReportMissing(ctx, g, nodeID, w.lost)
	case w.clock.Now().Before(at):
		return w.ledger.ReportBooting(ctx, g, nodeID)
	}
	return w.ledger.ReportUp(ctx, g, nodeID, ledger.Instance{CheckWithin: w.look, Devices: []capacity.Device{
		{UUID: nodeID + "-0", Model: "h100", MemoryMiB: 81920},
		{UUID: nodeID + "-1", Index: 1, Model: "h100", MemoryMiB: 81920},
	}})
}

// warmNodes makes n nodes ready that nobody holds.
func (w *world) warmNodes(n int) {
	w.Helper()
	by := w.newPerson("warmer " + w.clock.Now().String())
	a := w.mustAllocate(by, 2*n)
	w.pass(boot)
	_, err := w.ledger.Release(w.Context(), by, a.ID)
	require.NoError(w, err)
	w.doDueWork()
	require.Len(w, w.readNodes(node.Ready), n)
}

func (w *world) readNodes(in ...node.State) (list []node.Node) {
	w.Helper()
	w.read(func(r ledger.Reader) (err error) {
		list, err = r.Nodes(ledger.NodeFilter{State: in}, ledger.Page{Limit: 500})
		return err
	})
	return list
}

func (w *world) read(fn func(ledger.Reader) error) {
	w.Helper()
	require.NoError(w, w.store.Read(w.Context(), fn))
}

func (w *world) mustAllocate(by ledger.Actor, gpus int) allocation.Allocation {
	w.Helper()
	a, err := w.ledger.Allocate(w.Context(), by, ledger.AllocateRequest{Pool: "lab", GPUs: gpus, Lease: time.Hour})
	require.NoError(w, err)
	return a
}

func (w *world) mustReserve(by ledger.Actor, gpus int, window calendar.Interval) reservation.Reservation {
	w.Helper()
	r, err := w.ledger.Reserve(w.Context(), by, ledger.ReserveRequest{Pool: "lab", GPUs: gpus, Window: window})
	require.NoError(w, err)
	return r
}

func (w *world) readReservation(id string) (found reservation.Reservation) {
	w.Helper()
	w.read(func(r ledger.Reader) (err error) {
		found, err = r.Reservation(ledger.Scope{All: true}, id)
		return err
	})
	return found
}

func (w *world) readAllocation(id string) (found allocation.Allocation) {
	w.Helper()
	w.read(func(r ledger.Reader) (err error) {
		found, err = r.Allocation(ledger.Scope{All: true}, id)
		return err
	})
	return found
}

// readEvents lists what happened, or with a type only that.
func (w *world) readEvents(kind string) (found []ledger.Event) {
	w.Helper()
	w.read(func(r ledger.Reader) (err error) {
		found, err = r.Events(ledger.Scope{All: true}, ledger.EventFilter{Type: kind}, 500)
		return err
	})
	return found
}

// liveOf lists the live reservations made by a key or schedule.
func (w *world) liveOf(by string) (found []reservation.Reservation) {
	w.Helper()
	w.read(func(r ledger.Reader) (err error) {
		found, err = r.Reservations(ledger.Scope{All: true}, ledger.BookingFilter{MadeBy: by, Live: true},
			ledger.Page{Limit: 500})
		return err
	})
	return found
}
