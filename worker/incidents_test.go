package worker_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/sim"
	"github.com/forewarm/forewarm/worker/queue/memqueue"
)

// What follows happened to others. Each story ends the same way: no machine is
// left, no node ever had two, and the ledger's costs are the cloud's bill.

// hooked lets a test act around the calls of a provider.
type hooked struct {
	provisioners.Provisioner
	before, after func()                                           // around Create
	list          func(provisioners.List, error) provisioners.List // in place of what List answers
}

func (h hooked) Create(ctx context.Context, token string, spec provisioners.Spec) (provisioners.Instance, error) {
	if h.before != nil {
		h.before()
	}
	made, err := h.Provisioner.Create(ctx, token, spec)
	if h.after != nil {
		h.after()
	}
	return made, err
}

func (h hooked) List(ctx context.Context, owner string) (provisioners.List, error) {
	list, err := h.Provisioner.List(ctx, owner)
	if h.list != nil {
		return h.list(list, err), nil
	}
	return list, err
}

// firstTimes returns a function that does something the first n times.
func firstTimes(n int, do func()) func() {
	return func() {
		if n > 0 {
			n--
			do()
		}
	}
}

// kubernetes-sigs/cluster-api-provider-aws#5794: a panic right after RunInstances; every restart made another instance.
func TestIncident01PanicAfterCreateMakesNoSecondMachine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.startWorker(parts{cloud: hooked{Provisioner: w.cloud, after: firstTimes(3,
		func() { panic("index out of range") })}})
	a := w.allocateNode()
	w.driveFor(5 * time.Minute)
	w.requireActive(a)
	w.closeAndCheck()
	w.requireOver(1)
}

// conflicted is a store that refuses some transactions of handlers, as a
// database does whose row somebody else changed.
type conflicted struct {
	ledger.Store
	left *int
}

func (c conflicted) InTx(ctx context.Context, fn func(ledger.Tx) error) error {
	if *c.left > 0 {
		*c.left--
		return ledger.ErrConflict
	}
	return c.Store.InTx(ctx, fn)
}

// kubernetes-sigs/cluster-api-provider-aws#6131: the id was in memory until the end; a write
// conflict, and a second instance came.
func TestIncident02WriteConflictAfterCreateLosesNoID(t *testing.T) {
	t.Parallel()
	for conflicts := range 4 {
		t.Run(fmt.Sprint(conflicts), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			left := 0
			w.startWorker(parts{
				ledger: verbs.New(conflicted{w.store, &left}, w.ids, w.config),
				cloud:  hooked{Provisioner: w.cloud, after: firstTimes(1, func() { left = conflicts })},
			})
			a := w.allocateNode()
			for range 5 { // a step that cannot write is an error of that step alone
				_, _ = w.worker.Step(t.Context())
			}
			w.driveFor(5 * time.Minute)
			w.requireActive(a)
			w.closeAndCheck()
			w.requireOver(1)
		})
	}
}

// kubernetes-sigs/cluster-api-provider-aws#2915, #1769: a 404 for a live instance was believed, and a duplicate made.
func TestIncident03NotFoundForALiveMachineMakesNoDuplicate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.startWorker(parts{})
	a := w.allocateNode()
	for range 8 {
		w.injectFault(sim.Fault{Op: sim.OpGet, Effect: sim.Deny, Times: 2})
		w.injectFault(sim.Fault{Op: sim.OpList, Effect: sim.Truncate})
		w.driveFor(2 * time.Minute)
	}
	w.requireActive(a)
	w.closeAndCheck()
	w.requireOver(1)
}

// hashicorp/terraform-provider-aws#27543: a retried RunInstances without a client token made instances twice.
func TestIncident04RepeatedCreatesAreOneMachine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.startWorker(parts{queue: threefold{memqueue.New(silentLogger())}})
	w.injectFault(sim.Fault{Op: sim.OpCreate, Effect: sim.ExecuteAndTimeout, Times: 5})
	a := w.allocateNode()
	w.driveFor(5 * time.Minute)
	w.requireActive(a)
	w.closeAndCheck()
	w.requireOver(1)
}

// ubicloud/ubicloud#5898: the token was used again with another instance type, which is an error for ever.
func TestIncident05ATokenIsNeverUsedForAnotherSource(t *testing.T) {
	t.Parallel()
	s := usualSite()
	s.spare = true
	w := buildWorld(t, s)
	w.startWorker(parts{})
	w.injectFault(sim.Fault{Op: sim.OpCreate, Effect: sim.ExecuteAndTimeout})
	w.injectFault(sim.Fault{Op: sim.OpCreate, Effect: sim.FailBefore, Kind: provisioners.KindCapacity})
	a, b := w.allocateNode(), w.allocateNode()
	w.driveFor(5 * time.Minute) // one creation is repeated when the other source has become the better one
	w.requireActive(a)
	w.requireActive(b)
	tokens, sources := map[string]bool{}, map[string]int{}
	for _, n := range w.readNodes() {
		tokens[n.Token] = true
		if n.State() == node.Ready {
			sources[n.Offering.Provisioner]++
		}
	}
	require.Len(t, tokens, 3)
	require.Equal(t, map[string]int{"sim": 1, "spare": 1}, sources)
	w.closeAndCheck()
}

func (w *world) updatePool(change func(*capacity.Pool)) {
	w.t.Helper()
	now := readFrom(w, func(r ledger.Reader) (ledger.Pool, error) { return r.Pool(w.pool.ID) })
	_, err := w.ledger.UpdatePool(w.t.Context(), w.actor, w.pool.ID, now.DefinitionVersion, change)
	require.NoError(w.t, err)
}

// aws/karpenter-provider-aws#549, #2734, #2832: one in ten machines of a burst of a thousand leaked.
func TestIncident06ABurstLeaksNothing(t *testing.T) {
	t.Parallel()
	const burst = 30
	w := newWorld(t)
	w.updatePool(func(p *capacity.Pool) { p.MaxNodes = burst })
	chance := rand.New(rand.NewPCG(549, 0))
	for range burst {
		w.injectFault([]sim.Fault{
			{Op: sim.OpCreate, Effect: sim.ExecuteAndTimeout},
			{Op: sim.OpCreate, Effect: sim.FailBefore, Kind: provisioners.KindTransient},
			{Op: sim.OpCreate, Effect: sim.FailBefore, Kind: provisioners.KindThrottled, RetryAfter: time.Second},
			{Op: sim.OpGet, Effect: sim.Deny},
		}[chance.IntN(4)])
	}
	w.startMortal(&death{at: 70})
	var all []allocation.Allocation
	for range burst {
		all = append(all, w.allocateNode())
	}
	w.driveFor(6 * time.Minute)
	for _, a := range all {
		w.requireActive(a)
	}
	w.closeAndCheck()
	w.requireOver(burst)
}

// deathAtCreation returns a death that comes with the first creation.
func (w *world) deathAtCreation() (*death, parts) {
	d := &death{}
	cloud := hooked{Provisioner: mortalCloud{w.cloud, d}, before: firstTimes(1, d.dieNext)}
	return d, parts{ledger: verbs.New(mortalStore{w.store, d}, w.ids, w.config), cloud: cloud}
}

// paperclipinc/karpenter-provider-hetzner#53: the leader was lost between create and write; the
// server was billed on, and retries met its name for ever.
func TestIncident07TheSuccessorFindsTheMachineOfALostLeader(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d, p := w.deathAtCreation()
	w.death = d
	w.startWorker(p)
	a := w.allocateNode()
	w.driveFor(5 * time.Minute)
	require.True(t, d.hasCome())
	w.requireActive(a)
	w.closeAndCheck()
	w.requireOver(1)
}

// skypilot-org/skypilot#4431: killed right after the create call; a status refresh saw no machine
// yet and deleted the row.
func TestIncident08ARowIsNotDroppedWhileItsMachineIsNotListedYet(t *testing.T) {
	t.Parallel()
	for _, lag := range []time.Duration{45 * time.Second, 4 * time.Minute} {
		t.Run(lag.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.cloud.SetListLag(lag)
			d, p := w.deathAtCreation()
			w.death = d
			w.startWorker(p)
			w.injectFault(sim.Fault{Op: sim.OpCreate, Effect: sim.ExecuteAndTimeout})
			w.injectFault(sim.Fault{Op: sim.OpCreate, Effect: sim.FailBefore, Kind: provisioners.KindUnknown,
				Times: 100})
			w.allocateNode()
			w.driveFor(20 * time.Second)
			require.True(t, d.hasCome())
			w.endEverything()
			w.retireNode(w.readNodes()[0])
			w.closeAndCheck()
			require.Equal(t, 1, w.cloud.Bill(w.clock.Now()).Total.Machines)
		})
	}
}

// skypilot-org/skypilot#4392: creation timed out, the instance was there, and could not be destroyed.
func TestIncident09TheMachineOfATimedOutCreationIsDestroyed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.startWorker(parts{})
	w.injectFault(sim.Fault{Op: sim.OpCreate, Effect: sim.ExecuteAndTimeout})
	w.injectFault(sim.Fault{Op: sim.OpCreate, Effect: sim.FailBefore, Kind: provisioners.KindUnknown, Times: 1000})
	w.injectFault(sim.Fault{Op: sim.OpDelete, Effect: sim.ExecuteAndTimeout, Times: 2})
	w.allocateNode()
	w.driveFor(time.Minute)
	w.endEverything()
	w.retireNode(w.readNodes()[0])
	w.driveFor(10 * time.Minute)
	w.closeAndCheck()
	w.requireOver(1)
}

// skypilot-org/skypilot#779, #656: a stop spawned an unmanaged copy; a hundred launches at once made duplicates.
func TestIncident10ParallelAndLateLaunchesMakeNoCopies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var late []func()
	w.startWorker(parts{queue: threefold{memqueue.New(silentLogger())},
		cloud: recorded{w.cloud, new(sync.Mutex), &late}})
	var launches sync.WaitGroup
	for range 20 {
		launches.Go(func() {
			_, _ = w.ledger.Allocate(t.Context(), w.actor,
				ledger.AllocateRequest{Pool: "a100", GPUs: 8, Lease: time.Hour})
		})
	}
	launches.Wait()
	w.driveFor(5 * time.Minute)
	require.Len(t, w.countMachines(), 4)
	w.closeAndCheck()
	require.NotEmpty(t, late)
	for _, again := range late {
		again()
	}
	w.requireOver(4)
}

// recorded keeps every creation, to be repeated when nobody wants it any more.
type recorded struct {
	provisioners.Provisioner
	mu   *sync.Mutex
	late *[]func()
}

func (r recorded) Create(ctx context.Context, token string, spec provisioners.Spec) (provisioners.Instance, error) {
	r.mu.Lock()
	*r.late = append(*r.late, func() { _, _ = r.Provisioner.Create(context.WithoutCancel(ctx), token, spec) })
	r.mu.Unlock()
	return r.Provisioner.Create(ctx, token, spec)
}
