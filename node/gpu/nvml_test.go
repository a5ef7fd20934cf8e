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
	c := played("library:" + buildDriver(t, flags...))
	defer c.Close()
	return c.Look(t.Context())
}

func buildDriver(t *testing.T, flags ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "libnvidia-ml.so.1")
	output, err := exec.CommandContext(t.Context(), "gcc",
		append(flags, "-shared", "-fPIC", "-o", path, "testdata/nvml.c")...).CombinedOutput()
	require.NoError(t, err, string(output))
	return path
}

// Clocks are reset and read back; that the daemon may not is said, and what is not the default after all is an error.
func TestClocksAreReset(t *testing.T) {
	t.Parallel()
	for flag, want := range map[string]string{
		"-DRESET=0":      "clocks reset",
		"-DRESET=3":      "clocks not reset: the driver cannot",
		"-DRESET=4":      "clocks not reset: the daemon may not",
		"-DRESET=999":    "clocks not reset: NVML error 999",
		"-DGRAPHICS=900": "the clocks of GPU GPU-1 were reset, and that of graphics is still 900 MHz instead of 1410",
	} {
		c := gpu.Clocks{Command: played("library:" + buildDriver(t, flag)).Command}
		said, err := c.ResetClocks(t.Context(), []string{"GPU-1", "MIG-1"})
		if err != nil {
			said = err.Error()
		}
		require.Equal(t, want, said)
	}
	c := gpu.Clocks{Command: played("library:" + buildDriver(t)).Command}
	said, err := c.ResetClocks(t.Context(), []string{"GPU-9"})
	require.NoError(t, err)
	require.Equal(t, "clocks not reset: a GPU cannot be reached (NVML error 6)", said)
	said, err = c.ResetClocks(t.Context(), []string{"MIG-1"})
	require.NoError(t, err)
	require.Equal(t, "they have no clocks of their own", said)
	c.Command = played("library:/nonexistent.so").Command
	said, err = c.ResetClocks(t.Context(), []string{"GPU-1"})
	require.NoError(t, err)
	require.Contains(t, said, "clocks not reset: no NVIDIA driver found")
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

// Links and corrected errors are told where the driver has them; the throughput of PCIe only when it is asked for.
func TestNVMLOfLinks(t *testing.T) {
	t.Parallel()
	c := played("library:" + buildDriver(t, "-DLINKS"))
	defer c.Close()
	for _, c.PCIe = range []bool{false, true} {
		r, err := c.Look(t.Context())
		require.NoError(t, err)
		got := r.Look.GPUs[0].GPUTelemetry
		require.Equal(t, []*int{gpu.Of(1), gpu.Of(5), gpu.Of(8), gpu.Of(16), gpu.Of(4), gpu.Of(3)}, []*int{
			got.PCIeGeneration, got.PCIeGenerationMax, got.PCIeWidth, got.PCIeWidthMax, got.NVLinks, got.NVLinksUp})
		require.Equal(t, []*int64{gpu.Of(int64(10)), gpu.Of(int64(11)), gpu.Of(int64(0)), gpu.Of(int64(1))}, []*int64{
			got.ECCVolatile, got.ECCAggregate, got.ECCCorrectedVolatile, got.ECCCorrectedAggregate})
		var sent, received *int64
		if c.PCIe {
			sent, received = gpu.Of(int64(5000)), gpu.Of(int64(7000))
		}
		require.Equal(t, []*int64{sent, received}, []*int64{got.PCIeSent, got.PCIeReceived})
		require.Equal(t, contract.GPUTelemetry{}, r.Look.GPUs[1].GPUTelemetry, "it has none")
	}
}

// What a GPU did is told from the second look on, by those that keep counters; what one of them does not tell is
// absent.
func TestNVMLOfActivity(t *testing.T) {
	t.Parallel()
	c := played("library:" + buildDriver(t, "-DGPM=0"))
	defer c.Close()
	for n := range 3 {
		r, err := c.Look(t.Context())
		require.NoError(t, err)
		got := r.Look.GPUs[0].GPUTelemetry
		require.Nil(t, r.Look.GPUs[1].SMActivity, "it keeps none")
		if n == 0 {
			require.Nil(t, got.SMActivity)
			continue
		}
		require.Equal(t, gpu.Of(42.5), got.SMActivity)
		require.Equal(t, []*int64{gpu.Of(int64(20 << 20)), gpu.Of(int64(21 << 20)), gpu.Of(int64(61 << 20)), nil}, []*int64{
			got.PCIeSent, got.PCIeReceived, got.NVLinkSent, got.NVLinkReceived})
	}
	refused := played("library:" + buildDriver(t, "-DGPM=4"))
	defer refused.Close()
	for range 2 {
		r, err := refused.Look(t.Context())
		require.NoError(t, err)
		require.Nil(t, r.Look.GPUs[0].SMActivity, "the daemon may not")
	}
}

// A GPU that is divided is its parts: each has its own memory, and the heat and the faults of all.
func TestNVMLOfAGPUThatIsDivided(t *testing.T) {
	t.Parallel()
	r, err := askDriver(t, "-DMIG")
	require.NoError(t, err)
	require.Empty(t, r.Look.Problem)
	part := func(uuid string, index int) contract.LookGPU {
		return contract.LookGPU{UUID: uuid, Parent: "GPU-1", Index: index, Minor: gpu.Of(4),
			Model: "NVIDIA H100 80GB HBM3 MIG 1g.10gb", GPUTelemetry: contract.GPUTelemetry{
				MemoryUsedMiB: gpu.Of(13), MemoryMiB: gpu.Of(9856), MIG: gpu.Of(true), Temperature: gpu.Of(45),
				Throttle: []string{"hardware_thermal"}, Remapped: gpu.Of(3), RemapPending: gpu.Of(true),
				RemapFailed: gpu.Of(false), Recovery: "reset"}}
	}
	require.Equal(t, []contract.LookGPU{part("MIG-1", 0), part("MIG-2", 1),
		{UUID: "GPU-2", Index: 2, Minor: gpu.Of(5), Model: "NVIDIA H100 80GB HBM3"}}, r.Look.GPUs)

	r, err = askDriver(t, "-DEMPTY")
	require.NoError(t, err)
	require.Equal(t, "GPU GPU-1 is in MIG mode and has no MIG devices", r.Look.Problem)
	require.Len(t, r.Look.GPUs, 2, "it is not lost")
}

func TestCapabilitiesOfAMIGDevice(t *testing.T) {
	t.Parallel()
	const list = "config 1\nmonitor 2\ngpu0/gi9/access 3\ngpu0/gi9/ci0/access 4\ngpu0/gi9/ci1/access 5\n" +
		"gpu0/gi90/access 30\ngpu4/gi9/access 66\ngpu4/gi9/ci0/access 67\n"
	require.Equal(t, []int{66, 67}, gpu.ParseCapabilities(list, 4, 9, 0))
	require.Equal(t, []int{3, 5}, gpu.ParseCapabilities(list, 0, 9, 1))
	require.Nil(t, gpu.ParseCapabilities(list, 0, 9, 2), "one of the two alone opens nothing")
	require.Nil(t, gpu.ParseCapabilities("", 0, 9, 0))
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
