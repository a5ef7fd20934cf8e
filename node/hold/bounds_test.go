package hold_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/node/hold"
)

const gib = 1 << 30

func TestWhatAHoldMayHave(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		bounds      hold.Bounds
		held, there int
		want        hold.Share
	}{
		"two of eight":            {hold.Bounds{}, 2, 8, hold.Share{Memory: 24 * gib, Weight: 200}},
		"all":                     {hold.Bounds{}, 8, 8, hold.Share{Memory: 96 * gib, Weight: 800}},
		"nobody knows how many":   {hold.Bounds{}, 2, 0, hold.Share{Memory: 96 * gib, Weight: 100}},
		"more than are seen":      {hold.Bounds{}, 9, 8, hold.Share{Memory: 96 * gib, Weight: 800}},
		"never more processors":   {hold.Bounds{CPUs: "share"}, 1, 8, hold.Share{12 * gib, 100, 4000}},
		"so many processors each": {hold.Bounds{CPUs: "1.5"}, 2, 8, hold.Share{24 * gib, 200, 3000}},
		"so much memory each":     {hold.Bounds{Memory: "2GiB"}, 3, 8, hold.Share{Memory: 6 * gib, Weight: 300}},
		"more than there is":      {hold.Bounds{Memory: "1TiB"}, 3, 8, hold.Share{Memory: 96 * gib, Weight: 300}},
		"too little to start":     {hold.Bounds{Memory: "1MiB"}, 1, 8, hold.Share{Memory: 64 << 20, Weight: 100}},
		"no memory bound":         {hold.Bounds{Memory: "none"}, 1, 8, hold.Share{Weight: 100}},
		"no bound on processors":  {hold.Bounds{CPUs: "none"}, 1, 8, hold.Share{Memory: 12 * gib}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := hold.ShareOf(c.bounds, 96*gib, 32, hold.Shares{Held: c.held, PerGPU: 1}, c.there)
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}

func TestWrongBoundsSayWhatIsRight(t *testing.T) {
	t.Parallel()
	for want, b := range map[string]hold.Bounds{
		`hold_memory: "half": must be share, none or a size for each GPU, such as 100GiB`:    {Memory: "half"},
		`hold_memory: "0": must be share, none or a size for each GPU, such as 100GiB`:       {Memory: "0"},
		`hold_memory: "9999999TiB": must be share, none or a size for each GPU, such as 100`: {Memory: "9999999TiB"},
		`hold_cpus: "-1": must be weight, share, none or a number for each GPU, such as 16`:  {CPUs: "-1"},
		`hold_cpus: "NaN": must be weight, share, none or a number for each GPU, such as 16`: {CPUs: "NaN"},
		`memory_reserve: "some": must be a size, such as 4GiB`:                               {Reserve: "some"},
	} {
		require.ErrorContains(t, b.Check(), want)
	}
	require.NoError(t, hold.Bounds{}.Check())
	require.NoError(t, hold.Bounds{Memory: "512MiB", CPUs: "0.5", Reserve: "1GiB"}.Check())
}

// Only whoever has the machine divides it: a batch system's job, for example, has a part that is divided already.
func TestWhoDividesTheMachine(t *testing.T) {
	t.Parallel()
	for cgroup, want := range map[string]bool{
		"/": true, "/system.slice/forewarm-node.service": true, "/user.slice/user-0.slice/session-3.scope": true,
		"/system.slice/slurmstepd.scope/job_7/step_0/user/task_0": false, "/docker/0123": false,
		"/kubepods.slice/kubepods-pod1.slice/cri-containerd-2.scope": false,
	} {
		require.Equal(t, want, hold.LeadsTheMachine(cgroup), cgroup)
	}
}

// The kernel bounds the memory of a hold where it counts it; where it does not, the node says why.
func TestAHoldIsBoundedOrTheNodeSaysWhy(t *testing.T) {
	k := keeperIn(t, newDir(t))
	k.Look(gpus(0, 1), day)
	p, err := k.Open(hold.Hold{AllocationID: "alc_bounds", GPUUUIDs: []string{"GPU-1"}})
	require.NoError(t, err)
	t.Cleanup(k.EndAll)
	told := false
	for _, v := range p.Environment {
		told = told || strings.HasPrefix(v, "FOREWARM_MEMORY_BYTES=")
	}
	require.Equal(t, k.Unbounded() == "", told)
	if k.Unbounded() != "" {
		require.Empty(t, p.JobCgroups)
		return
	}
	require.Equal(t, filepath.Join(p.JobCgroups, "sessions"), p.Cgroup)
	text, err := os.ReadFile(filepath.Join(p.JobCgroups, "memory.max"))
	require.NoError(t, err)
	require.Contains(t, p.Environment, "FOREWARM_MEMORY_BYTES="+strings.TrimSpace(string(text)))
	most, err := os.ReadFile(filepath.Join(p.JobCgroups, "..", "memory.max"))
	require.NoError(t, err)
	n, err := strconv.ParseInt(strings.TrimSpace(string(most)), 10, 64)
	require.NoError(t, err)
	require.Positive(t, n, "all holds together leave the machine some")
	weight, err := os.ReadFile(filepath.Join(p.JobCgroups, "cpu.weight"))
	require.NoError(t, err)
	require.Equal(t, "100\n", string(weight))
	again, err := k.Open(hold.Hold{AllocationID: "alc_bounds", GPUUUIDs: []string{"GPU-1"}})
	require.NoError(t, err)
	require.Equal(t, p, again)
}
