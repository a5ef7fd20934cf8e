package contract_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
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
