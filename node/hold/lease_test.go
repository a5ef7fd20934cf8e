package hold_test

import (
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/node/hold"
	"github.com/forewarm/forewarm/node/launch/launchtest"
)

// daemonAt is a keeper of a machine that booted at a time, by a clock that may be wrong.
func daemonAt(t *testing.T, dir string, now *clock.Manual, boot string, up time.Duration) *hold.Keeper {
	t.Helper()
	k, err := hold.NewKeeper(hold.Config{Dir: filepath.Join(dir, "holds"), Book: filepath.Join(dir, "book.json"),
		Clock: now, BootID: boot, Booted: now.Now().Add(-up), Log: slog.New(slog.DiscardHandler),
		Grace: 100 * time.Millisecond, Launcher: launchtest.Launcher()})
	require.NoError(t, err)
	return k
}

func leaseOf(id string, seconds int64) []contract.Lease {
	return []contract.Lease{{AllocationID: id, LeftSeconds: seconds}}
}

// A lease is over when it was said to be, and a minute later the hold is ended by the node itself: its work is, too,
// and it is cleaned and proved as any other.
func TestANodeEndsALeaseByItself(t *testing.T) {
	now := clock.NewManual(day)
	k := daemonAt(t, newDir(t), now, "boot", time.Hour)
	k.Look(gpus(0, 400), day)
	p, err := k.Open(hold.Hold{AllocationID: alc(1), GPUUUIDs: []string{"GPU-1"}, Lease: time.Minute})
	require.NoError(t, err)
	require.Equal(t, day.Add(time.Minute), k.LeaseEnds())
	works := begin(t, p, "sleep 1000 >/dev/null 2>&1 & echo $!")
	k.HearLeases(k.List(), leaseOf(alc(1), 600), day)
	k.HearLeases([]string{alc(2)}, nil, day) // said before the hold was opened
	require.Equal(t, day.Add(10*time.Minute), k.LeaseEnds(), "it was extended")
	k.EndLapsed(day.Add(10*time.Minute+hold.LeaseGrace-time.Second), day)
	require.Equal(t, []string{alc(1)}, k.List())
	require.True(t, alive(works))
	now.Set(day.Add(10*time.Minute + hold.LeaseGrace))
	k.EndLapsed(now.Now(), now.Now().Add(time.Second-hold.LeaseGrace))
	require.Equal(t, []string{alc(1)}, k.List(), "it was not asked for long enough")
	k.EndLapsed(now.Now(), now.Now().Add(-hold.LeaseGrace))
	awaitChange(t, k)
	require.False(t, alive(works))
	require.Zero(t, k.LeaseEnds())
	k.Look(gpus(0, 400), now.Now())
	require.Regexp(t, "^the node ended it by itself, as its lease was over; .* no process on 1 GPU", k.Cleaned()[0].Proof)
	require.Empty(t, k.Cleaned()[0].Problem)
}

// A control plane that names no lease, as an older one does and one that was restored from a backup, ends holds by its
// word alone.
func TestALeaseThatIsNotToldEndsNothing(t *testing.T) {
	now := clock.NewManual(day)
	k := daemonAt(t, newDir(t), now, "boot", time.Hour)
	_, err := k.Open(hold.Hold{AllocationID: alc(1), Lease: time.Minute})
	require.NoError(t, err)
	k.HearLeases(k.List(), nil, day)
	require.Zero(t, k.LeaseEnds())
	k.EndLapsed(day.AddDate(1, 0, 0), day)
	require.Equal(t, []string{alc(1)}, k.List())
	k.EndAll()
}

// The clock of the machine is a day ahead or behind for the next daemon. It ends the lease when the one before would
// have; and not what was of an earlier boot, of which nothing runs any more.
func TestALeaseEndsByNoClockOfTheMachine(t *testing.T) {
	for name, wrong := range map[string]time.Duration{"right": 0, "ahead": 24 * time.Hour, "behind": -24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			dir, now := newDir(t), clock.NewManual(day)
			k := daemonAt(t, dir, now, "boot", time.Hour)
			_, err := k.Open(hold.Hold{AllocationID: alc(1), GPUUUIDs: []string{"GPU-1"}})
			require.NoError(t, err)
			k.HearLeases(k.List(), leaseOf(alc(1), 600), day)

			now.Advance(wrong + 5*time.Minute)
			require.Zero(t, daemonAt(t, dir, now, "another", 0).LeaseEnds())
			k = daemonAt(t, dir, now, "boot", time.Hour+5*time.Minute)
			require.Equal(t, now.Now().Add(5*time.Minute), k.LeaseEnds())
			k.EndLapsed(now.Advance(5*time.Minute+hold.LeaseGrace-time.Second), time.Time{})
			require.Len(t, k.List(), 1)
			k.EndLapsed(now.Advance(time.Second), time.Time{})
			require.Empty(t, k.List())
			awaitChange(t, k)
		})
	}
}

// What an earlier daemon had to clean is read back by the next one, whatever its clock says, and is over then.
func TestCleaningGoesOnByAnotherClock(t *testing.T) {
	for name, wrong := range map[string]time.Duration{"ahead": 24 * time.Hour, "behind": -24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			dir, now := newDir(t), clock.NewManual(day)
			k := daemonAt(t, dir, now, "boot", time.Hour)
			k.Look(gpus(0, 400), day)
			for n := 1; n <= 2; n++ {
				_, err := k.Open(hold.Hold{AllocationID: alc(n), GPUUUIDs: []string{"GPU-1"}})
				require.NoError(t, err)
			}
			k.End([]string{alc(1)})
			awaitChange(t, k)
			k.Look(gpus(0, 400), now.Now())
			awaitChange(t, k)
			require.Len(t, k.Cleaned(), 1)
			k.End(nil) // it is over
			k.End([]string{alc(2)})
			awaitChange(t, k)

			now.Advance(wrong)
			k = daemonAt(t, dir, now, "boot", time.Hour)
			k.Look(gpus(1, 400), now.Now())
			require.Empty(t, k.Cleaned(), "it is not given up at once")
			k.Look(gpus(0, 400), now.Advance(time.Second))
			require.Empty(t, k.Cleaned()[0].Problem)
			for n := 1; n <= 2; n++ {
				_, err := k.Open(hold.Hold{AllocationID: alc(n)})
				require.ErrorIs(t, err, hold.ErrEnded)
			}
		})
	}
}
