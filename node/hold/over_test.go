package hold_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/node/hold"
)

// A server that was frozen asks for a session when its allocation is over and its GPUs are
// somebody else's, also when the daemon never had anything of the allocation, and when it
// began anew since.
func TestWhatIsOverIsNotOpenedAgain(t *testing.T) {
	dir, now := newDir(t), clock.NewManual(day)
	k := keeperAt(t, dir, now)
	_, err := k.Open(hold.Hold{AllocationID: alc(1)})
	require.NoError(t, err)
	require.Empty(t, k.Over([]string{alc(1)}))
	for _, id := range []string{alc(1), alc(2)} {
		k.End([]string{id})
		awaitChange(t, k)
		now.Advance(time.Second)
		k.Look(gpus(0, 1), now.Now())
		awaitChange(t, k)
		require.Len(t, k.Cleaned(), 1, "it is proved")
		require.Empty(t, k.Over([]string{id}), "the server has yet to hear it")
		k.End(nil) // the server has heard it
		require.Empty(t, k.Cleaned())
	}
	for range 2 {
		for _, id := range []string{alc(1), alc(2)} {
			_, err = k.Open(hold.Hold{AllocationID: id})
			require.ErrorIs(t, err, hold.ErrEnded)
			_, err = k.Begin(id)
			require.ErrorIs(t, err, hold.ErrEnded)
		}
		require.Empty(t, k.List())
		require.Equal(t, []string{alc(1), alc(2)}, k.Over([]string{alc(1), alc(2), alc(3)}))
		k = keeperAt(t, dir, now)
	}
	now.Advance(31 * 24 * time.Hour)
	endAll(t, k, now, alc(3))
	now.Advance(2 * time.Hour)
	keeperAt(t, dir, now)
	list, err := os.ReadFile(filepath.Join(dir, "book.json.over"))
	require.NoError(t, err)
	require.NotContains(t, string(list), alc(1), "the list does not grow for ever")
	require.Contains(t, string(list), alc(3))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "book.json.over"), append(list, "\n"+alc(4)+" 17"...), 0o600))
	k = keeperAt(t, dir, now) // of one that broke off within a line
	endAll(t, k, now, alc(5))
	for _, id := range []string{alc(3), alc(5)} {
		_, err = keeperAt(t, dir, now).Open(hold.Hold{AllocationID: id})
		require.ErrorIs(t, err, hold.ErrEnded)
	}
}

// endAll ends holds of which nothing runs, until the server has heard it, and returns what was told of them.
func endAll(t *testing.T, k *hold.Keeper, now *clock.Manual, ids ...string) []contract.Cleaned {
	t.Helper()
	k.End(ids)
	awaitChange(t, k)
	now.Advance(time.Second)
	k.Look(contract.NodeLook{Source: "simulated"}, now.Now())
	awaitChange(t, k)
	told := k.Cleaned()
	require.Len(t, told, len(ids))
	k.End(nil)
	require.Empty(t, k.Cleaned())
	return told
}

// A hold that the daemon ends by itself is not forgotten before the server was told that it is clean.
func TestAHoldEndsBeforeTheServerNamesIt(t *testing.T) {
	now := clock.NewManual(day)
	k := keeperAt(t, newDir(t), now)
	_, err := k.Open(hold.Hold{AllocationID: alc(1)})
	require.NoError(t, err)
	<-k.EndNow(alc(1))
	awaitChange(t, k)
	<-k.EndNow(alc(1)) // once is enough
	awaitChange(t, k)
	require.Empty(t, k.List())
	k.End(nil) // the answer of a server that knows nothing of it
	now.Advance(time.Second)
	k.Look(contract.NodeLook{Source: "simulated"}, now.Now())
	k.End(nil) // the answer to a report of before
	told := k.Cleaned()
	require.Len(t, told, 1)
	require.Empty(t, told[0].Problem)
	k.End(nil)
	require.Empty(t, k.Cleaned())
	_, err = k.Open(hold.Hold{AllocationID: alc(1)})
	require.ErrorIs(t, err, hold.ErrEnded)
}
