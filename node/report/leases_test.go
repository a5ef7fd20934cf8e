package report_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/health"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/node/gpu"
	"github.com/forewarm/forewarm/node/hold"
	"github.com/forewarm/forewarm/node/launch/launchtest"
	"github.com/forewarm/forewarm/node/report"
	"github.com/forewarm/forewarm/node/watch"
)

// holder is a daemon with the hold of an allocation, of whose lease the server says that ten minutes are left.
type holder struct {
	*daemon
	*report.Reporter
	clock *clock.Manual
	holds *hold.Keeper
	begun time.Time
}

const held = "alc_report"

func newHolder(t *testing.T) *holder {
	t.Helper()
	h := &holder{daemon: newDaemon(t), clock: clock.NewManual(begin)}
	folder, err := os.MkdirTemp("/var/tmp", "forewarm-report-test-") // holders pass through it
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(folder)) })
	require.NoError(t, os.Chmod(folder, 0o711)) //nolint:gosec // as said
	h.holds, err = hold.NewKeeper(hold.Config{Dir: filepath.Join(folder, "holds"), Clock: h.clock, BootID: "boot",
		Book: filepath.Join(h.dir, "holds.json"), Log: slog.New(slog.DiscardHandler), Launcher: launchtest.Launcher()})
	require.NoError(t, err)
	t.Cleanup(h.holds.EndAll)
	h.again()
	h.wait()
	_, err = h.holds.Open(hold.Hold{AllocationID: held})
	require.NoError(t, err)
	h.say(600)
	h.begun = h.now
	h.wait()
	return h
}

// again has another daemon begin in the place of the one before.
func (h *holder) again() {
	h.Helper()
	state, err := report.OpenState(h.dir)
	require.NoError(h, err)
	w := watch.New(&gpu.Simulated{Seed: "x", Count: 2, MemoryMiB: 1000}, nil, health.Policy{}, state.Health().For("boot"))
	h.Reporter, err = report.New(report.Config{URL: "http://control.plane", NodeID: "nod_1", Token: obs.NewSecret("t"),
		Version: "1", BootID: "boot", Epoch: 7, HTTP: h.server, Log: slog.New(slog.DiscardHandler),
		Holds: h.holds}, w, state)
	require.NoError(h, err)
}

// say has the server say how many seconds of the lease are left.
func (h *holder) say(seconds int64) {
	h.server.said.Leases = []contract.Lease{{AllocationID: held, LeftSeconds: seconds}}
}

// wait does one step, and lets the time pass until the next one is due.
func (h *holder) wait() time.Duration {
	h.Helper()
	wait := h.mustStep(h.Reporter)
	h.clock.Set(h.now)
	return wait
}

// waitFor does steps until a time after the lease was told.
func (h *holder) waitFor(d time.Duration) {
	h.Helper()
	for h.now.Before(h.begun.Add(d)) {
		h.wait()
	}
}

// The server that can be reached says how a lease ends, and is asked when it is over by what was known.
func TestTheServerIsAskedWhenALeaseIsOver(t *testing.T) {
	t.Parallel()
	h := newHolder(t)
	h.say(3)
	require.Equal(t, 3*time.Second, h.wait(), "it does not wait for its next report")
	h.say(600)
	h.server.beats = nil
	require.Equal(t, 10*time.Second, h.wait())
	require.Len(t, h.server.beats, 1)
	require.Equal(t, []string{held}, h.holds.List(), "it was extended")
	h.say(3)
	h.wait()
	h.server.said = contract.HeartbeatAnswer{Ended: []string{held}}
	h.wait()
	require.Empty(t, h.holds.List())
}

// A server that cannot be reached for a while, as when it is started anew, ends nothing: the lease that it extended
// meanwhile goes on. It is asked each few seconds once the lease is over, however long it has been away.
func TestAServerThatIsBackInTimeKeepsAHold(t *testing.T) {
	t.Parallel()
	h := newHolder(t)
	h.server.broken = true
	h.waitFor(10*time.Minute + hold.LeaseGrace - 6*time.Second)
	require.Equal(t, []string{held}, h.holds.List())
	h.server.broken = false
	h.say(1200)
	h.waitFor(10*time.Minute + hold.LeaseGrace + time.Minute)
	require.Equal(t, []string{held}, h.holds.List())
}

// One that stays away does not keep a holder's work beyond its lease and a minute.
func TestASilentServerKeepsNoHoldForEver(t *testing.T) {
	t.Parallel()
	h := newHolder(t)
	h.server.broken = true
	for len(h.holds.List()) > 0 {
		require.Less(t, h.now, h.begun.Add(10*time.Minute+hold.LeaseGrace+6*time.Second))
		h.wait()
	}
	require.GreaterOrEqual(t, h.now, h.begun.Add(10*time.Minute+hold.LeaseGrace))
}

// freeze lets time pass in which the daemon does nothing.
func (h *holder) freeze(d time.Duration) {
	h.now = h.now.Add(d)
	h.clock.Set(h.now)
}

// endsAfter does steps until the hold is ended, and returns how long that took.
func (h *holder) endsAfter() time.Duration {
	h.Helper()
	from, at := h.now, h.now
	for len(h.holds.List()) > 0 {
		require.Less(h, h.now, from.Add(time.Hour))
		at = h.now
		h.wait()
	}
	return at.Sub(from)
}

// A daemon that was frozen beyond the end of a lease ends nothing before it has asked in vain for as long as one that
// was not, however long it has asked before.
func TestADaemonThatWasFrozenAsksFirst(t *testing.T) {
	t.Parallel()
	h := newHolder(t)
	h.freeze(time.Hour)
	h.wait()
	require.Equal(t, []string{held}, h.holds.List(), "the server has extended it")
	h.server.broken = true
	h.waitFor(time.Hour + 10*time.Minute + hold.LeaseGrace - 10*time.Second)
	require.Equal(t, []string{held}, h.holds.List())
	h.freeze(time.Hour)
	require.InDelta(t, hold.LeaseGrace, h.endsAfter(), float64(6*time.Second))
}

// So does one that begins when the lease has been over for long.
func TestADaemonThatBeginsAnewAsksFirst(t *testing.T) {
	t.Parallel()
	h := newHolder(t)
	h.server.broken = true
	h.freeze(time.Hour)
	h.again()
	require.InDelta(t, hold.LeaseGrace, h.endsAfter(), float64(6*time.Second))
}

// A look at a driver that hangs delays each question; it does not keep a hold for ever.
func TestASlowDriverKeepsNoHoldForEver(t *testing.T) {
	t.Parallel()
	h := newHolder(t)
	h.server.broken = true
	for len(h.holds.List()) > 0 {
		require.Less(t, h.now, h.begun.Add(10*time.Minute+3*hold.LeaseGrace))
		h.wait()
		h.freeze(43 * time.Second)
	}
}

// The server is asked at the very end of a lease, also by a daemon that reports more rarely.
func TestTheEndOfALeaseIsUrgent(t *testing.T) {
	t.Parallel()
	h := newHolder(t)
	h.LookEvery, h.ReportEvery = 2*time.Second, 30*time.Second
	h.say(7)
	h.wait()
	over := h.holds.LeaseEnds()
	require.Equal(t, 7*time.Second, over.Sub(h.server.beats[len(h.server.beats)-1].SentAt))
	h.server.beats = nil
	for !h.now.After(over) {
		h.wait()
	}
	require.Len(t, h.server.beats, 1)
	require.Equal(t, over, h.server.beats[0].SentAt)
}

// Of two daemons with one identity the later one is believed. The earlier one ends, and leaves the other what runs; it
// ends what runs where the node is over.
func TestADaemonThatIsFollowedLeavesWhatRuns(t *testing.T) {
	t.Parallel()
	for _, followed := range []bool{true, false} {
		h := newHolder(t)
		p := contract.NewProblem(contract.CodeDaemonRefused, "no")
		if followed {
			p.Errors = []contract.FieldError{{Pointer: "/epoch", Code: contract.ErrorSuperseded}}
		}
		h.server.fail = &p
		_, err := h.step(h.Reporter)
		var refused *report.RefusedError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, followed, refused.Superseded())
		require.Equal(t, followed, len(h.holds.List()) == 1)
	}
}
