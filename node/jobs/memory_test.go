package jobs_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/node/hold"
	"github.com/forewarm/forewarm/node/jobs"
)

// What the kernel says of an attempt's cgroup, in files that look like its own.
func TestWhoseMemoryWasFull(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ofJob, ofHold, most string
		killed              bool
		reason              string
	}{
		"nothing was killed": {"oom 0\noom_kill 0\n", "oom 3\noom_kill 3\n", "1", false, ""},
		"the hold's": {"oom 0\noom_kill 2\n", "oom 1\noom_kill 2\n", "2147483648\n", true,
			"it needed more than the 2048 MiB of memory that its allocation has on this node"},
		"the node's": {"oom 0\noom_kill 1\n", "oom 0\noom_kill 1\n", "107374182400\n", true,
			"its node had no memory left, and the kernel ended it"},
		"of a hold without a bound": {"oom 0\noom_kill 1\n", "oom 0\noom_kill 1\n", "max\n", true,
			"its node had no memory left, and the kernel ended it"},
		"they are gone": {"", "", "", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for file, text := range map[string]string{"job/memory.events": c.ofJob, "memory.events": c.ofHold,
				"memory.max": c.most, "job/memory.peak": "4096\n"} {
				path := filepath.Join(dir, file)
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
				require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
			}
			reason, killed, peak := jobs.MemoryOf(filepath.Join(dir, "job"))
			require.Equal(t, c.killed, killed)
			require.Equal(t, c.reason, reason)
			require.Equal(t, int64(4096), peak)
		})
	}
	_, killed, peak := jobs.MemoryOf("")
	require.False(t, killed)
	require.Zero(t, peak)
}

// A job that needs more memory than its allocation has is ended, all of it, and says so. Its peak is told
// in any case.
func TestAJobThatNeedsTooMuchMemory(t *testing.T) {
	n := newNodeWith(t, hold.Config{Bounds: hold.Bounds{Memory: "96MiB"}})
	o := order("head -c 30000000 /dev/zero | tail -c 30000000 >/dev/null")
	require.Zero(t, n.run(o))
	require.Greater(t, n.report(first).PeakMemoryBytes, int64(20<<20))
	if n.holds.Unbounded() != "" {
		return // the kernel counts no memory here, and bounds none
	}
	require.Less(t, n.report(first).PeakMemoryBytes, int64(96<<20))
	o = order("sleep 1000 & head -c 300000000 /dev/zero | tail -c 300000000 >/dev/null; echo survived")
	o.Attempt = 2
	require.Equal(t, contract.JobReport{Code: "oom", ExitCode: 137, Signal: "KILL",
		Reason: "it needed more than the 96 MiB of memory that its allocation has on this node"}, n.run(o))
	require.Empty(t, n.server.got(o.JobKey, ""))
	require.InDelta(t, 96<<20, n.report(o.JobKey).PeakMemoryBytes, 1<<20)
	left, err := filepath.Glob("/sys/fs/cgroup/forewarm-holds/" + alc(1) + "-*/job-*")
	require.NoError(t, err)
	require.Empty(t, left, "nothing of it is left, also what it had in the background")
}
