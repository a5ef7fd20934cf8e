package access_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/access"
)

const (
	firstUUID  = "GPU-6e1b2c3d-0000-4a5b-8c7d-001122334455"
	secondUUID = "GPU-6e1b2c3d-0001-4a5b-8c7d-001122334455"
)

func TestEnvironment(t *testing.T) {
	t.Parallel()
	s := access.Seat{Allocation: "alc_1", Kind: access.SSH, Rank: 1, Nodes: 2, GPUs: 4, Master: "10.0.0.1",
		UUIDs: []string{firstUUID, secondUUID}, Indices: []int{2, 5}}
	require.Equal(t, map[string]string{
		"CUDA_VISIBLE_DEVICES": firstUUID + "," + secondUUID, "NVIDIA_VISIBLE_DEVICES": firstUUID + "," + secondUUID,
		"FOREWARM_ALLOCATION": "alc_1", "NODE_RANK": "1", "NNODES": "2", "NPROC_PER_NODE": "2", "WORLD_SIZE": "4",
		"MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "26105",
	}, s.Environment())

	s.Master = ""
	require.NotContains(t, s.Environment(), "MASTER_ADDR", "nobody knows it")
	s.Nodes = 1
	require.Equal(t, "127.0.0.1", s.Environment()["MASTER_ADDR"], "one node needs no name")
}

func TestSharesAreTold(t *testing.T) {
	t.Parallel()
	env := access.Seat{Nodes: 1, GPUs: 1, UUIDs: []string{firstUUID}, Indices: []int{2},
		Shares: 1, SharesPerGPU: 4, ShareMemory: 20480}.Environment()
	require.Equal(t, "1/4/20480", env["FOREWARM_GPU_SHARES"]+"/"+env["FOREWARM_SHARES_PER_GPU"]+"/"+
		env["FOREWARM_SHARE_MEMORY_MIB"])
	require.NotContains(t, access.Seat{Nodes: 1, GPUs: 1, SharesPerGPU: 1}.Environment(), "FOREWARM_GPU_SHARES")
}

// CUDA knows nothing of UUIDs that were made up.
func TestMadeUpUUIDs(t *testing.T) {
	t.Parallel()
	devices := func(s access.Seat) string { return s.Environment()["CUDA_VISIBLE_DEVICES"] }
	for _, made := range []string{"GPU-UNPROBED-1", "n1-gpu-0", "GPU-6e1b2c3d-0000-4a5b-8c7d-00112233445",
		"GPU-6e1b2c3d-0000-4a5b-8c7d-00112233445z", "6e1b2c3d-0000-4a5b-8c7d-001122334455"} {
		s := access.Seat{Kind: access.SSH, UUIDs: []string{firstUUID, made}, Indices: []int{0, 3}}
		require.Equal(t, "0,3", devices(s), made)
		s.Kind = access.Slurm
		require.Empty(t, devices(s), "Slurm counts the devices of a job itself")
		s.Simulated = true
		require.Equal(t, firstUUID+","+made, devices(s))
	}
	require.Equal(t, "MIG-6e1b2c3d-0000-4a5b-8c7d-001122334455",
		devices(access.Seat{UUIDs: []string{"MIG-6e1b2c3d-0000-4a5b-8c7d-001122334455"}, Indices: []int{0}}))
}

// All nodes of an allocation meet at one port, which no outgoing connection has.
func TestPort(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.String().Draw(t, "id")
		port := access.Port(id)
		require.Equal(t, port, access.Port(id))
		require.GreaterOrEqual(t, port, access.FirstPort)
		require.Less(t, port, access.FirstPort+access.Ports)
	})
	require.NotEqual(t, access.Port("alc_1"), access.Port("alc_2"))
}
