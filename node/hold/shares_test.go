package hold_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/node/hold"
)

// oneOfFour is a share of the GPU that the looks of these tests tell of.
func oneOfFour(n int) hold.Hold {
	return hold.Hold{AllocationID: alc(n), GPUUUIDs: []string{"GPU-1"}, Shares: hold.Shares{Held: 1, PerGPU: 4}}
}

// Who leaves a GPU on which others go on is clean once its own processes have ended; who leaves it last, once nothing
// is left there.
func TestWhoSharesAGPULeavesIt(t *testing.T) {
	k := keeperIn(t, newDir(t))
	k.Look(gpus(0, 10), day)
	_, err := k.Open(oneOfFour(1))
	require.NoError(t, err)
	k.Look(gpus(1, 5000), day)
	_, err = k.Open(oneOfFour(2))
	require.NoError(t, err)

	k.End([]string{alc(1)})
	awaitChange(t, k)
	k.Look(gpus(1, 7000), day.Add(time.Second))
	require.Len(t, k.Cleaned(), 1)
	require.Empty(t, k.Cleaned()[0].Problem)
	require.Contains(t, k.Cleaned()[0].Proof, "others go on with their work on 1 GPU")
	awaitChange(t, k)

	k.End([]string{alc(1), alc(2)})
	awaitChange(t, k)
	k.Look(gpus(1, 7000), day.Add(2*time.Second))
	require.Len(t, k.Cleaned(), 1, "somebody's process is on the GPU, and nobody holds it")
	k.Look(gpus(0, 4000), day.Add(3*time.Second))
	require.Len(t, k.Cleaned(), 1, "what was in use while the first one was there is not how it was before")
	k.Look(gpus(0, 20), day.Add(4*time.Second))
	require.Len(t, k.Cleaned(), 2)
	require.Contains(t, k.Cleaned()[1].Proof, "no process on 1 GPU, memory as before")
}

// A GPU that somebody shares and that is lost is lost to all.
func TestASharedGPUThatIsLost(t *testing.T) {
	k := keeperIn(t, newDir(t))
	k.Look(gpus(0, 10), day)
	for n := range 2 {
		_, err := k.Open(oneOfFour(n))
		require.NoError(t, err)
	}
	k.End([]string{alc(0)})
	awaitChange(t, k)
	lost := gpus(0, 10)
	lost.GPUs[0].Lost = true
	k.Look(lost, day.Add(2*time.Minute))
	require.Len(t, k.Cleaned(), 1)
	require.Equal(t, "GPU GPU-1 is lost", k.Cleaned()[0].Problem)
}

// What a share may have of a machine is its part of what the GPU's holder would have.
func TestWhatAShareMayHave(t *testing.T) {
	t.Parallel()
	for want, c := range map[hold.Share]hold.Bounds{
		{Memory: 3 * gib, Weight: 25}:               {},
		{Memory: 3 * gib, Weight: 25, MilliC: 1000}: {CPUs: "share"},
		{Memory: 2 * gib, Weight: 25, MilliC: 500}:  {Memory: "8GiB", CPUs: "2"},
	} {
		got, err := hold.ShareOf(c, 96*gib, 32, hold.Shares{Held: 1, PerGPU: 4}, 8)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}
