package discover

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/capacity"
)

// absent is a library that is not there, so that the tests do not depend on the
// machine they run on.
var absent = NVML{Library: "/nonexistent/libnvidia-ml.so.1"}

func smiSource(script string) FirstOf {
	return FirstOf{Library: absent, Command: SMI{Command: []string{"sh", "-c", script}}}
}

// The rows are as nvidia-smi prints them: an A100, and a GB10, which shares the
// host's memory.
func TestSMI(t *testing.T) {
	t.Parallel()
	devices, err := smiSource(`printf '%s\n' \
		'0, GPU-5f1d3c2a-9a56-5d0e-b8ab-0a0c8a1f2b3c, 81920, 0, NVIDIA A100-SXM4-80GB' \
		'1, GPU-0b7e6f2c-1111-2222-3333-444455556666, [N/A], [N/A], NVIDIA GB10' \
		'2, GPU-broken, 81920, 3, NVIDIA A100-SXM4-80GB' ''`).Devices(t.Context())
	require.NoError(t, err)
	require.Equal(t, []capacity.Device{
		{UUID: "GPU-5f1d3c2a-9a56-5d0e-b8ab-0a0c8a1f2b3c", Index: 0, Model: "NVIDIA A100-SXM4-80GB", MemoryMiB: 81_920},
		{UUID: "GPU-0b7e6f2c-1111-2222-3333-444455556666", Index: 1, Model: "NVIDIA GB10"},
	}, devices)
}

// What nvidia-smi says of a GPU that is divided, beside one that is not (NVIDIA MIG User Guide, "Device Enumeration").
func TestSMIOfAGPUThatIsDivided(t *testing.T) {
	t.Parallel()
	devices, err := smiSource(`case "$0" in
-L) printf '%s\n' 'GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-a)' \
	'  MIG 3g.40gb     Device  0: (UUID: MIG-1)' '  MIG 1c.2g.20gb+me Device  1: (UUID: MIG-2)' \
	'GPU 1: NVIDIA A100-SXM4-80GB (UUID: GPU-b)' ;;
*) printf '%s\n' '0, GPU-a, 81920, 0, NVIDIA A100-SXM4-80GB' '1, GPU-b, 81920, 0, NVIDIA A100-SXM4-80GB' ;;
esac`).Devices(t.Context())
	require.NoError(t, err)
	require.Equal(t, []capacity.Device{
		{UUID: "MIG-1", Index: 0, Model: "NVIDIA A100-SXM4-80GB MIG 3g.40gb", MemoryMiB: 40_960},
		{UUID: "MIG-2", Index: 1, Model: "NVIDIA A100-SXM4-80GB MIG 1c.2g.20gb+me", MemoryMiB: 20_480},
		{UUID: "GPU-b", Index: 2, Model: "NVIDIA A100-SXM4-80GB", MemoryMiB: 81_920},
	}, devices)
}

func TestSMIGetsTheQuery(t *testing.T) {
	t.Parallel()
	_, err := smiSource(`echo "$0 $1"; exit 3`).Devices(t.Context())
	require.ErrorContains(t, err,
		"--query-gpu=index,uuid,memory.total,ecc.errors.uncorrected.volatile.total,name --format=csv,noheader,nounits")
}

func TestSMIFailures(t *testing.T) {
	t.Parallel()
	_, err := FirstOf{Library: absent,
		Command: SMI{Command: []string{"no-such-command-nvidia-smi"}}}.Devices(t.Context())
	require.ErrorIs(t, err, ErrNoDriver)
	const noDriver = `echo "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."; exit 9`
	_, err = smiSource(noDriver).Devices(t.Context())
	require.ErrorIs(t, err, ErrNoDriver)
	_, err = smiSource(`echo broken >&2; exit 1`).Devices(t.Context())
	require.ErrorContains(t, err, "broken")
	require.NotErrorIs(t, err, ErrNoDriver)
	devices, err := smiSource(`echo "No devices were found"; exit 6`).Devices(t.Context())
	require.NoError(t, err)
	require.Empty(t, devices)
}

func TestSMIThatHangsIsEnded(t *testing.T) {
	t.Parallel()
	hanging := SMI{Command: []string{"sh", "-c", "exec sleep 600"}, Timeout: time.Millisecond}
	_, err := hanging.Devices(t.Context())
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestRowsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, row := range []string{
		"text", "0, GPU-1, 10, 0", "x, GPU-1, 10, 0, A", "-1, GPU-1, 10, 0, A", "0, [N/A], 10, 0, A", "0, , 10, 0, A",
		"0, GPU-1, ten, 0, A", "0, GPU-1, -1, 0, A", "0, GPU-1, 10, 0, [Unknown Error]", "0, GPU-1, 10, 0, ",
		"99999999, GPU-1, 10, 0, A",
		"0, GPU-1, 10, many, A",
	} {
		_, err := parseSMI(row)
		require.Error(t, err, row)
	}
	devices, err := parseSMI("3, GPU-1, 10, 0, A, with a comma\n")
	require.NoError(t, err)
	require.Equal(t, []capacity.Device{{UUID: "GPU-1", Index: 3, Model: "A, with a comma", MemoryMiB: 10}}, devices)
}

func FuzzParseSMI(f *testing.F) {
	f.Add("0, GPU-1, 81920, 0, NVIDIA A100-SXM4-80GB\n")
	f.Add("0, GPU-1, [N/A], [N/A], NVIDIA GB10\r\n")
	f.Fuzz(func(t *testing.T, output string) {
		devices, err := parseSMI(output)
		for _, device := range devices {
			if err == nil && (device.UUID == "" || device.Model == "" || device.MemoryMiB < 0 || device.Index < 0) {
				t.Fatalf("%q gives %+v", output, device)
			}
		}
	})
}

func TestSimulatedDevicesAreStableAndTheHostsOwn(t *testing.T) {
	t.Parallel()
	source := Simulated{Host: "a", Count: 4, Model: "SIM a100", MemoryMiB: 1024}
	first, err := source.Devices(t.Context())
	require.NoError(t, err)
	second, err := source.Devices(t.Context())
	require.NoError(t, err)
	require.Equal(t, first, second)
	source.Host = "b"
	third, err := source.Devices(t.Context())
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, device := range append(first, third...) {
		require.Regexp(t, `^GPU-SIM-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`, device.UUID)
		seen[device.UUID] = true
	}
	require.Len(t, seen, 8)
}
