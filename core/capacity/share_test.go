package capacity_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/capacity"
)

func TestUnits(t *testing.T) {
	t.Parallel()
	devices := []capacity.Device{{UUID: "GPU-a", Index: 0, Model: "a100", MemoryMiB: 81920},
		{UUID: "GPU-b", Index: 1, Model: "a100", MemoryMiB: 81920}}
	require.Equal(t, devices, capacity.Pool{}.Units(devices), "a GPU that is not shared is booked as it is")
	require.Equal(t, devices, capacity.Pool{SharesPerGPU: 1}.Units(devices))
	require.Equal(t, []capacity.Device{
		{UUID: "GPU-a::0", Index: 0, Model: "a100", MemoryMiB: 27306},
		{UUID: "GPU-a::1", Index: 0, Model: "a100", MemoryMiB: 27306},
		{UUID: "GPU-a::2", Index: 0, Model: "a100", MemoryMiB: 27306},
		{UUID: "GPU-b::0", Index: 1, Model: "a100", MemoryMiB: 27306},
		{UUID: "GPU-b::1", Index: 1, Model: "a100", MemoryMiB: 27306},
		{UUID: "GPU-b::2", Index: 1, Model: "a100", MemoryMiB: 27306},
	}, capacity.Pool{SharesPerGPU: 3}.Units(devices))
	require.Empty(t, capacity.Pool{SharesPerGPU: 2}.Units([]capacity.Device{{}})[1].UUID,
		"a share of a GPU without a name has none either")
}

func TestGPUOf(t *testing.T) {
	t.Parallel()
	for unit, gpu := range map[string]string{"GPU-a": "GPU-a", "GPU-a::12": "GPU-a", "": "",
		"MIG-3e1b": "MIG-3e1b"} {
		require.Equal(t, gpu, capacity.GPUOf(unit), unit)
		number, isShare := capacity.ShareOf(unit)
		require.Equal(t, unit != gpu, isShare, unit)
		require.True(t, !isShare || number == 12, unit)
	}
}
