package contract_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/access"
)

// A server decides on the variables of GPUs, and on no others.
func TestCheckEnvironment(t *testing.T) {
	t.Parallel()
	good := map[string]string{"CUDA_VISIBLE_DEVICES": "GPU-1,GPU-2", "NODE_RANK": "0"}
	require.NoError(t, contract.NodeAccess{Environment: good}.CheckEnvironment())
	for name, value := range map[string]string{"PATH": "/tmp/evil", "LD_PRELOAD": "x.so", "MASTER_ADDR": "a\nPATH=b",
		"NNODES": "1\x00"} {
		bad := map[string]string{"NODE_RANK": "0", name: value}
		require.ErrorContains(t, contract.NodeAccess{Environment: bad}.CheckEnvironment(), name)
	}
}

// All that the control plane sets for a node passes, also where others are on its GPUs.
func TestWhatAllocationsSetPasses(t *testing.T) {
	t.Parallel()
	for _, seat := range []access.Seat{
		{Allocation: "alc_1", Nodes: 2, GPUs: 2, UUIDs: []string{"GPU-SIM-1"}, Master: "10.0.0.7", Simulated: true},
		{Allocation: "alc_1", Nodes: 1, GPUs: 1, Indices: []int{3}, SharesPerGPU: 4, Shares: 1, ShareMemory: 20_480},
	} {
		env := seat.Environment()
		require.Equal(t, seat.SharesPerGPU > 1, env["FOREWARM_GPU_SHARES"] != "")
		require.NoError(t, contract.NodeAccess{Environment: env}.CheckEnvironment())
	}
}
