//go:build linux && cgo

package gpu_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/node/gpu"
)

// askDriver builds the fake driver library and has a child load it: a process can know
// only one.
func askDriver(t *testing.T, flags ...string) (gpu.Reading, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "libnvidia-ml.so.1")
	output, err := exec.CommandContext(t.Context(), "gcc",
		append(flags, "-shared", "-fPIC", "-o", path, "testdata/nvml.c")...).CombinedOutput()
	require.NoError(t, err, string(output))
	c := played("library:" + path)
	defer c.Close()
	return c.Look(t.Context())
}

func TestNVML(t *testing.T) {
	t.Parallel()
	require.True(t, gpu.HasNVML)
	r, err := askDriver(t)
	require.NoError(t, err)
	require.Equal(t, contract.NodeLook{Source: "nvml", Driver: "570.86.10", GPUs: []contract.LookGPU{
		{UUID: "GPU-1", Index: 0, Minor: gpu.Of(4), Model: "NVIDIA H100 80GB HBM3", GPUTelemetry: contract.GPUTelemetry{
			Utilization: gpu.Of(37), MemoryBusy: gpu.Of(12), MemoryUsedMiB: gpu.Of(1024), MemoryMiB: gpu.Of(81559),
			Temperature: gpu.Of(45), Power: gpu.Of(123.456), Throttle: []string{"hardware_thermal"},
			Remapped: gpu.Of(3), RemapPending: gpu.Of(true), RemapFailed: gpu.Of(false), Recovery: "reset"}},
		{UUID: "GPU-2", Index: 1, Minor: gpu.Of(5), Model: "NVIDIA H100 80GB HBM3"},
	}}, r.Look, "what the second does not have is absent")
}

func TestNVMLWithoutAGPU(t *testing.T) {
	t.Parallel()
	r, err := askDriver(t, "-DLOST")
	require.NoError(t, err)
	require.Len(t, r.Look.GPUs, 1)
	require.Equal(t, "GPU 1 cannot be reached: NVML error 15", r.Look.Problem)
}

func TestNVMLFailures(t *testing.T) {
	t.Parallel()
	_, err := askDriver(t, "-DINIT=9")
	require.ErrorIs(t, err, gpu.ErrNoDriver)
	_, err = askDriver(t, "-DINIT=999")
	require.ErrorContains(t, err, "error 999")
	r, err := askDriver(t, "-DOLD") // calling what is missing would end the child
	require.NoError(t, err)
	require.Nil(t, r.Look.GPUs[0].Utilization)
	_, err = askDriver(t, "-DANCIENT")
	require.ErrorContains(t, err, "it lacks nvmlDeviceGetUUID")
	c := played("library:" + filepath.Join(os.TempDir(), "nonexistent.so"))
	_, err = c.Look(t.Context())
	require.ErrorIs(t, err, gpu.ErrNoDriver)
}
