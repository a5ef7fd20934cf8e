package hold_test

import (
	"context"
	"errors"
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

// cleans is a cleaner of GPUs that waits until it is told what came of it.
type cleans struct {
	asked chan []string
	comes chan error
}

func (c cleans) Clean(_ context.Context, uuids []string) (string, error) {
	c.asked <- uuids
	return "overwritten", <-c.comes
}

func scrubbingKeeper(t *testing.T, now clock.Clock) (*hold.Keeper, cleans) {
	t.Helper()
	dir, c := newDir(t), cleans{asked: make(chan []string, 1), comes: make(chan error)}
	k, err := hold.NewKeeper(hold.Config{Dir: filepath.Join(dir, "holds"), Book: filepath.Join(dir, "book.json"),
		Clock: now, Log: slog.New(slog.DiscardHandler), Grace: 100 * time.Millisecond, Launcher: launchtest.Launcher(),
		Cleaner: c})
	require.NoError(t, err)
	return k, c
}

// endHoldOf opens the hold of a GPU and ends it, so that the GPU is all that is to be cleaned.
func endHoldOf(t *testing.T, k *hold.Keeper) {
	t.Helper()
	k.Look(gpus(0, 400), day)
	_, err := k.Open(hold.Hold{AllocationID: alc(1), GPUUUIDs: []string{"GPU-1"}})
	require.NoError(t, err)
	k.End([]string{alc(1)})
	awaitChange(t, k)
}

// The memory of GPUs is overwritten once nothing uses them, and they are read back after that before the hold has
// ended.
func TestGPUsAreCleanedAndReadBack(t *testing.T) {
	now := clock.NewManual(day)
	k, c := scrubbingKeeper(t, now)
	endHoldOf(t, k)
	k.Look(gpus(1, 400), day)
	require.Empty(t, c.asked, "something is on it")
	k.Look(gpus(0, 400), day)
	require.Equal(t, []string{"GPU-1"}, <-c.asked)
	require.False(t, k.AwaitsLook())
	k.Look(gpus(0, 400), day)
	require.Empty(t, k.Cleaned(), "that goes on")
	now.Advance(time.Second)
	c.comes <- nil
	awaitChange(t, k)
	require.True(t, k.AwaitsLook())
	k.Look(gpus(0, 400), day)
	k.Look(gpus(1, 9000), day.Add(2*time.Second))
	require.Empty(t, k.Cleaned(), "they are not read back, as they are now")
	k.Look(gpus(0, 400), day.Add(3*time.Second))
	require.Regexp(t, "; overwritten; no process on 1 GPU, memory as before$", k.Cleaned()[0].Proof)
	require.Empty(t, c.asked)
}

// Memory that could not be overwritten is not clean, and is tried again.
func TestGPUsThatCannotBeCleaned(t *testing.T) {
	now := clock.NewManual(day)
	k, c := scrubbingKeeper(t, now)
	endHoldOf(t, k)
	k.Look(gpus(0, 400), day)
	<-c.asked
	c.comes <- errors.New("a word differs")
	awaitChange(t, k)
	require.Equal(t, "a word differs", k.Cleaned()[0].Problem)
	require.Equal(t, []string{"GPU-1"}, k.Taken())
	now.Advance(time.Minute)
	k.End(nil)
	awaitChange(t, k)
	k.Look(gpus(0, 400), now.Now())
	<-c.asked
	c.comes <- nil
	awaitChange(t, k)
	require.Equal(t, []string{"GPU-1"}, k.Taken())
	k.Look(gpus(0, 400), now.Now())
	require.Empty(t, k.Cleaned()[0].Problem)
	require.Empty(t, k.Taken(), "how they are set now is nobody's but the administrator's")
}

// GPUs that others share stay as they are, and those of another machine, too.
func TestGPUsOfOthersAreNotCleaned(t *testing.T) {
	k, c := scrubbingKeeper(t, clock.NewManual(day))
	k.Look(gpus(0, 400), day)
	for i, h := range []hold.Hold{{GPUUUIDs: []string{"GPU-1"}, Shares: hold.Shares{Held: 1, PerGPU: 4}},
		{GPUUUIDs: []string{"GPU-9"}}} {
		h.AllocationID = alc(i)
		_, err := k.Open(h)
		require.NoError(t, err)
		k.End([]string{h.AllocationID})
		awaitChange(t, k)
		k.Look(gpus(0, 400), day)
		require.Equal(t, h.AllocationID, k.Cleaned()[0].AllocationID)
		awaitChange(t, k)
	}
	require.Empty(t, c.asked)
	_, err := k.Open(hold.Hold{AllocationID: alc(7), GPUUUIDs: []string{"GPU-SIM-1"}})
	require.NoError(t, err)
	k.End([]string{alc(7)})
	awaitChange(t, k)
	go func() {
		<-c.asked
		c.comes <- nil
	}()
	k.Look(contract.NodeLook{Source: "simulated", GPUs: []contract.LookGPU{{UUID: "GPU-SIM-1"}}}, day)
	require.Regexp(t, "; overwritten; simulated GPUs$", k.Cleaned()[0].Proof)
}
