package worker_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/sim"
)

// livePromise is one promise kept: booked, warm at its start, claimed, given back, and
// nothing left. However the worker is treated, this is how it must end.
func (w *world) livePromise() {
	w.t.Helper()
	r := w.reserveNode(5*time.Minute, 30*time.Minute)
	w.driveFor(5 * time.Minute)
	require.Equal(w.t, reservation.Ready, w.readReservation(r.ID).State(), "the promise was not warm at its start")
	a, err := w.ledger.Claim(w.t.Context(), w.actor, r.ID, 20*time.Minute, "")
	require.NoError(w.t, err)
	w.driveFor(time.Minute)
	require.Equal(w.t, allocation.Active, w.readAllocation(a.ID).State())
	_, err = w.ledger.Release(w.t.Context(), w.actor, a.ID)
	require.NoError(w.t, err)
	w.driveUntilQuiet()
	require.Equal(w.t, reservation.Claimed, w.readReservation(r.ID).State())
	require.Equal(w.t, allocation.Released, w.readAllocation(a.ID).State())
	w.requireOver(1)
}

// lifeEvents are the events of a life, each of which must happen once.
var lifeEvents = []string{
	"reservation.booked", "reservation.warming", "reservation.ready", "reservation.claimed",
	"node.requested", "node.provisioning", "node.booting", "node.ready", "node.draining", "node.deprovisioning",
	"node.gone",
	"allocation.active", "allocation.released",
}

func (w *world) requireOnce() {
	w.t.Helper()
	counts := map[string]int{}
	for _, e := range w.eventTypes() {
		counts[e]++
	}
	for _, event := range lifeEvents {
		require.Equal(w.t, 1, counts[event], "%s in %v", event, counts)
	}
}

var errKilled = errors.New("the process is dead")

// death kills a worker between two of its touches of the outside: the touch at
// that number still happens, but nobody hears the answer, and there is no next.
type death struct {
	at int // from 1; 0 never kills

	mu    sync.Mutex
	seen  int
	calls int // of them, those to providers
	dead  bool
}

// doUnlessDead does fn unless the process is dead.
func (d *death) doUnlessDead(fn func() error) error {
	alive, last := d.countTouch()
	if alive {
		return fn()
	}
	if last {
		_ = fn()
	}
	return errKilled
}

// callProvider is a touch of a provider.
func (d *death) callProvider(fn func() error) error {
	d.mu.Lock()
	if !d.dead {
		d.calls++
	}
	d.mu.Unlock()
	return d.doUnlessDead(fn)
}

func (d *death) countTouch() (alive, last bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dead {
		return false, false
	}
	d.seen++
	d.dead = d.seen == d.at
	return !d.dead, d.dead
}

// dieNext has the death come with the next touch.
func (d *death) dieNext() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.at = d.seen + 1
}

func (d *death) hasCome() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.dead
}

// mortalStore passes through death what the handling of a task does.
type mortalStore struct {
	ledger.Store
	*death
}

func (m mortalStore) InTx(ctx context.Context, fn func(ledger.Tx) error) error {
	if len(obs.Attrs(ctx)) == 0 && !m.hasCome() {
		return m.Store.InTx(ctx, fn)
	}
	return m.doUnlessDead(func() error { return m.Store.InTx(ctx, fn) })
}

// mortalCloud passes every call through death.
type mortalCloud struct {
	provisioners.Provisioner
	*death
}

func (m mortalCloud) Create(ctx context.Context, token string,
	spec provisioners.Spec) (i provisioners.Instance, err error) {
	err = m.callProvider(func() (err error) { i, err = m.Provisioner.Create(ctx, token, spec); return err })
	return i, err
}

func (m mortalCloud) Get(ctx context.Context, id string) (i provisioners.Instance, err error) {
	err = m.callProvider(func() (err error) { i, err = m.Provisioner.Get(ctx, id); return err })
	return i, err
}

func (m mortalCloud) List(ctx context.Context, owner string) (l provisioners.List, err error) {
	err = m.callProvider(func() (err error) { l, err = m.Provisioner.List(ctx, owner); return err })
	return l, err
}

func (m mortalCloud) Delete(ctx context.Context, id string) error {
	return m.callProvider(func() error { return m.Provisioner.Delete(ctx, id) })
}

func (m mortalCloud) Renew(ctx context.Context, id string, until time.Time) error {
	return m.callProvider(func() error { return m.Provisioner.(provisioners.Renewer).Renew(ctx, id, until) })
}

// startMortal starts a worker that dies of d.
func (w *world) startMortal(d *death) {
	w.t.Helper()
	w.death = d
	p := parts{ledger: verbs.New(mortalStore{w.store, d}, w.ids, w.config), cloud: mortalCloud{w.cloud, d}}
	if w.spare != nil {
		p.spare = mortalCloud{w.spare, d}
	}
	w.startWorker(p)
}

// testEveryDeath has a life lived once, and then once for each thing that a worker did
// to the ledger or to a provider in it, with a worker that is killed after it.
func testEveryDeath(t *testing.T, s site, live func(*world)) {
	t.Helper()
	calm, unhurt := buildWorld(t, s), &death{}
	calm.startMortal(unhurt)
	live(calm)
	t.Logf("%d crash points: %d after calls of providers, %d after transactions of the ledger",
		unhurt.seen, unhurt.calls, unhurt.seen-unhurt.calls)
	require.Greater(t, unhurt.calls, 4)
	require.Greater(t, unhurt.seen-unhurt.calls, 25)

	for at := 1; at <= unhurt.seen; at += crashStride {
		t.Run(fmt.Sprint("after touch ", at), func(t *testing.T) {
			t.Parallel()
			w, d := buildWorld(t, s), &death{at: at}
			w.startMortal(d)
			live(w)
			require.True(t, d.hasCome(), "nobody died")
		})
	}
}

// A worker that is killed after any of the things it does to the ledger or the
// provider leaves nothing that its successor does not put right: one machine,
// everything once, the same bill.
func TestTrapCKilledAnywhereTheSuccessorFinishes(t *testing.T) {
	t.Parallel()
	testEveryDeath(t, usualSite(), func(w *world) {
		w.livePromise()
		w.requireOnce()
	})
}

// The same where the first source refuses, and the machine comes from the second.
func TestTrapCKilledAnywhereInAFailover(t *testing.T) {
	t.Parallel()
	s := swiftSite()
	s.spare = true
	testEveryDeath(t, s, func(w *world) {
		w.injectFault(sim.Fault{Op: sim.OpCreate, Effect: sim.FailBefore, Kind: provisioners.KindCapacity, Times: 1000})
		a := w.allocateNode()
		w.driveFor(3 * time.Minute)
		w.requireActive(a)
		w.closeAndCheck()
		require.Equal(w.t, []node.State{node.Failed, node.Gone}, w.nodeStates())
		require.Zero(w.t, w.cloud.Bill(w.clock.Now()).Total.Machines)
		require.Equal(w.t, 1, w.spare.Bill(w.clock.Now()).Total.Machines)
	})
}

// The same where a creation times out, and its node is given up before it is
// known whether there is a machine.
func TestTrapCKilledAnywhereInAnAdoption(t *testing.T) {
	t.Parallel()
	testEveryDeath(t, swiftSite(), func(w *world) {
		w.injectFault(sim.Fault{Op: sim.OpCreate, Effect: sim.ExecuteAndTimeout})
		w.injectFault(sim.Fault{Op: sim.OpCreate, Effect: sim.FailBefore, Kind: provisioners.KindUnknown, Times: 1000})
		w.allocateNode()
		w.driveFor(30 * time.Second)
		w.endEverything()
		w.retireNode(w.readNodes()[0])
		w.closeAndCheck()
		w.requireOver(1)
	})
}

// swiftSite is a cloud whose machines need no more than one look to be up.
func swiftSite() site {
	s := usualSite()
	s.cloud.Offers[0].Boot = sim.Boot{P50: 20 * time.Second, P95: 25 * time.Second}
	return s
}

// Kill -9 of everything at once: only the database's file and the cloud stay.
func TestTrapCReopenedFromItsFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.db")
	w := openWorld(t, "sqlite://"+path)
	w.startWorker(parts{})
	r := w.reserveNode(10*time.Minute, 30*time.Minute)
	w.driveFor(8*time.Minute + 30*time.Second)
	require.Len(t, w.cloud.LivePerNode(), 1, "the machine is booting")

	again := w.reopenStore("sqlite://" + path)
	again.startWorker(parts{})
	again.driveFor(90 * time.Second)
	require.Equal(t, reservation.Ready, again.readReservation(r.ID).State())
	_, err := again.ledger.CancelReservation(t.Context(), again.actor, r.ID)
	require.NoError(t, err)
	again.driveFor(10 * time.Minute)
	again.requireOver(1)
}
