package verbs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/activity"
	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger"
)

// lookedAt is a node whose daemon tells what its two GPUs do.
type lookedAt struct {
	w      *world
	nodeID string
	daemon ledger.Actor
	used   [2]bool // what they do from now on
}

// lookAt has the daemon of a node join.
func (w *world) lookAt(nodeID string) *lookedAt {
	w.Helper()
	token, key := "token of "+nodeID, "key of "+nodeID
	_, err := w.ledger.IssueJoinToken(w.Context(), operator, nodeID, ledger.NewSecret{ID: token, Hash: []byte{1}},
		time.Minute)
	require.NoError(w, err)
	daemon := ledger.Actor{KeyID: token, Kind: ledger.JoinToken, NodeID: nodeID}
	_, err = w.ledger.JoinNode(w.Context(), daemon,
		ledger.Joining{BootID: "boot", Key: ledger.NewSecret{ID: key, Hash: []byte{2}}})
	require.NoError(w, err)
	daemon.KeyID, daemon.Kind = key, ledger.NodeKey
	l := &lookedAt{w: w, nodeID: nodeID, daemon: daemon}
	l.beat()
	return l
}

// beat reports what the GPUs do.
func (l *lookedAt) beat() {
	l.w.Helper()
	_, err := l.w.ledger.RecordBeat(l.w.Context(), l.daemon, ledger.Beat{BootID: "boot", Epoch: 1, Look: []byte("{}"),
		Activity: []activity.Look{{GPU: l.nodeID + "-0", Used: l.used[0]}, {GPU: l.nodeID + "-1", Used: l.used[1]}}})
	require.NoError(l.w, err)
}

// pass lets time go by with a beat every 30 seconds, which is as often as servers write.
func (l *lookedAt) pass(d time.Duration) {
	l.w.Helper()
	for end := l.w.clock.Now().Add(d); l.w.clock.Now().Before(end); {
		l.w.pass(30 * time.Second)
		l.beat()
	}
	l.w.doDueWork()
}

// stretches are what is known of the GPUs.
func (l *lookedAt) stretches() (found []activity.Stretch) {
	l.w.Helper()
	l.w.read(func(r ledger.Reader) error {
		byNode, err := r.GPUStretches(map[string]calendar.Interval{l.nodeID: {Start: monday, End: l.w.clock.Now()}})
		found = byNode[l.nodeID]
		return err
	})
	return found
}

// setIdlePolicy has the lab warn and reclaim.
func (w *world) setIdlePolicy(warn, reclaim time.Duration) error {
	w.Helper()
	pool := w.readPool()
	_, err := w.ledger.UpdatePool(w.Context(), operator, pool.ID, pool.DefinitionVersion, func(p *capacity.Pool) {
		p.Timers.IdleWarn, p.Timers.IdleReclaim = warn, reclaim
	})
	return err
}

func (w *world) readPool() (p ledger.Pool) {
	w.Helper()
	w.read(func(r ledger.Reader) (err error) {
		p, err = r.Pool(w.pool.ID)
		return err
	})
	return p
}

// holdOneNode is an allocation of a whole node, whose daemon tells what it does.
func (w *world) holdOneNode(timers ...time.Duration) (*lookedAt, allocation.Allocation) {
	w.Helper()
	if len(timers) == 2 {
		require.NoError(w, w.setIdlePolicy(timers[0], timers[1]))
	}
	a := w.allocateFor(w.newPerson("ann"), 2, 24*time.Hour)
	w.pass(boot)
	return w.lookAt(w.readNodes(node.Ready)[0].ID), w.readAllocation(a.ID)
}

// idleSince is since when the ledger holds an allocation for idle.
func (w *world) idleSince(id string) (since time.Time) {
	w.Helper()
	w.read(func(r ledger.Reader) error {
		a, err := r.Allocation(ledger.Scope{All: true}, id)
		require.NoError(w, err)
		idle, err := ledger.IdleAllocations(r, []allocation.Allocation{a})
		since = idle[id].Since
		return err
	})
	return since
}

func TestIdleGPUsAreWarnedOfOnceAndThenReclaimed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l, a := w.holdOneNode(time.Hour, 3*time.Hour)
	l.used = [2]bool{true, false}
	l.pass(90 * time.Minute)
	require.Empty(t, w.readEvents("allocation.idle"), "one of them works")
	l.used = [2]bool{}
	since := w.clock.Now()
	l.pass(59 * time.Minute)
	require.Empty(t, w.readEvents("allocation.idle"))
	require.Equal(t, since, w.idleSince(a.ID))
	l.pass(2 * time.Minute)
	warnings := w.readEvents("allocation.idle")
	require.Len(t, warnings, 1)
	require.Equal(t, a.OrganizationID, warnings[0].OrganizationID)
	require.Equal(t, "gpus_idle", warnings[0].Reason)
	require.Equal(t, "its GPUs have done nothing for 1h; unless they do something, it ends at Mon 13:35:30Z",
		warnings[0].Message)
	l.pass(119 * time.Minute)
	require.Len(t, w.readEvents("allocation.idle"), 1, "it is told once")
	require.Equal(t, allocation.Active, w.readAllocation(a.ID).State())
	l.pass(3 * time.Minute)
	ended := w.readAllocation(a.ID)
	require.Equal(t, allocation.Expired, ended.State())
	require.Equal(t, "gpus_idle", ended.Reason)
	require.Equal(t, "reclaimed: its GPUs did nothing for 3h1m", w.lastMessage("allocation.expired"))
	require.Less(t, ended.Cost, a.Cost, "it pays for what it held")
	require.Len(t, w.readEvents("allocation.expired"), 1)
}

func TestUseSavesAWarnedAllocation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l, a := w.holdOneNode(time.Hour, 2*time.Hour)
	l.pass(119 * time.Minute)
	require.Len(t, w.readEvents("allocation.idle"), 1)
	l.used[1] = true
	l.pass(30 * time.Second)
	l.used[1] = false
	l.pass(59 * time.Minute)
	require.Equal(t, allocation.Active, w.readAllocation(a.ID).State())
	require.Len(t, w.readEvents("allocation.idle"), 1)
	l.pass(3 * time.Minute)
	require.Len(t, w.readEvents("allocation.idle"), 2, "that is another idleness")
}

// Of GPUs that nobody looks at it is not known that they are idle, nor is it counted.
func TestASilentDaemonReclaimsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l, a := w.holdOneNode(time.Hour, 2*time.Hour)
	l.pass(110 * time.Minute)
	require.False(t, w.idleSince(a.ID).IsZero())
	w.pass(5 * time.Hour)
	require.True(t, w.idleSince(a.ID).IsZero())
	l.pass(50 * time.Minute)
	require.Len(t, w.readEvents("allocation.idle"), 1, "it is idle again for less than an hour")
	require.Equal(t, allocation.Active, w.readAllocation(a.ID).State())
}

func TestIdlenessEndsNothingWithoutAPolicy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l, a := w.holdOneNode()
	l.pass(5 * time.Hour)
	require.Equal(t, allocation.Active, w.readAllocation(a.ID).State())
	require.Equal(t, a.ActiveAt, w.idleSince(a.ID))
	require.NoError(t, w.setIdlePolicy(time.Hour, 2*time.Hour))
	l.pass(30 * time.Second)
	require.Len(t, w.readEvents("allocation.idle"), 1)
	l.pass(59 * time.Minute)
	require.Equal(t, allocation.Active, w.readAllocation(a.ID).State(), "an hour lies between the two, always")
	l.pass(3 * time.Minute)
	require.Equal(t, allocation.Expired, w.readAllocation(a.ID).State())
}

// GPUs that were idle before somebody held them are idle for that one from then on, and whoever
// held them before is not warned any more.
func TestIdlenessBeginsWithTheHolder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.NoError(t, w.setIdlePolicy(time.Hour, 0))
	w.changePool(func(p *capacity.Pool) { p.MinNodes = 1 })
	w.warmNodes(1)
	l := w.lookAt(w.readNodes(node.Ready)[0].ID)
	l.pass(2 * time.Hour)
	a := w.allocateFor(w.newPerson("ann"), 2, 24*time.Hour)
	l.pass(59 * time.Minute)
	require.Equal(t, a.ActiveAt, w.idleSince(a.ID))
	require.Empty(t, w.readEvents("allocation.idle"))
	l.pass(2 * time.Minute)
	require.Len(t, w.readEvents("allocation.idle"), 1)
}

// What was known is known to every process, and after a restart.
func TestARestartForgetsNoIdleness(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l, a := w.holdOneNode(time.Hour, 2*time.Hour)
	l.pass(100 * time.Minute)
	w.ledger = w.restartedLedger()
	require.Equal(t, a.ActiveAt, w.idleSince(a.ID))
	l.pass(25 * time.Minute)
	require.Equal(t, allocation.Expired, w.readAllocation(a.ID).State())
}

func TestABootEndsWhatWasSeen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l, _ := w.holdOneNode()
	l.pass(time.Hour)
	until := w.clock.Now()
	require.NoError(t, w.store.InTx(t.Context(), func(tx ledger.Tx) error {
		p, err := tx.Presence(l.nodeID)
		p.BootID = "another"
		require.NoError(t, err)
		return tx.Save(ledger.Change{Presences: []ledger.Presence{p}})
	}))
	w.pass(30 * time.Second)
	l.beat()
	found := l.stretches()
	require.Len(t, found, 2, "one of each GPU")
	require.Equal(t, until, found[0].End)
}

// A report that says nothing new is one row, that of its daemon.
func TestWhatGPUsDoIsWrittenWhenItChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l, _ := w.holdOneNode()
	l.used = [2]bool{true, true}
	l.pass(time.Hour)
	require.Len(t, l.stretches(), 2, "those that are open")
	for i := range 40 {
		l.used[0] = i%2 == 0
		l.pass(2 * time.Minute)
	}
	require.Len(t, l.stretches(), 2, "short pauses are use")
}

func TestThePolicyOfIdleGPUsIsChecked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var invalid *ledger.InvalidError
	for name, tc := range map[string]struct {
		warn, reclaim time.Duration
		field, rule   string
	}{
		"no warning": {0, time.Hour, "idle_reclaim_after_seconds",
			"must be 0 while idle_warn_after_seconds is: nobody loses GPUs unwarned"},
		"with the warning": {time.Hour, time.Hour, "idle_reclaim_after_seconds",
			"must be 0, for never, or more than idle_warn_after_seconds, 3600 s, and at most 31622400 s (366 days)"},
		"too soon to tell": {time.Minute, 0, "idle_warn_after_seconds",
			"must be 0, for no warning, or between 300 s and 31622400 s (366 days)"},
	} {
		require.ErrorAs(t, w.setIdlePolicy(tc.warn, tc.reclaim), &invalid, name)
		require.Equal(t, tc.field, invalid.Field)
		require.Equal(t, tc.rule, invalid.Rule)
	}
	pool := w.readPool()
	_, err := w.ledger.UpdatePool(t.Context(), w.newPerson("ann"), pool.ID, pool.DefinitionVersion,
		func(p *capacity.Pool) { p.Timers.IdleWarn = 0 })
	require.ErrorIs(t, err, ledger.ErrDenied)
}
