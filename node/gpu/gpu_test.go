package gpu_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/node/gpu"
)

// childVariable has the test binary play a child: what it says how it behaves.
const childVariable = "PLAYED_NVML_CHILD"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], childVariable) {
		playChild(strings.TrimPrefix(os.Args[1], childVariable+"="))
		return
	}
	os.Exit(m.Run())
}

// playChild answers looks; a hanging one does so until its test removes a file.
func playChild(how string) {
	if library, is := strings.CutPrefix(how, "library:"); is {
		_ = gpu.Serve(os.Stdin, os.Stdout, library)
		return
	}
	lines := bufio.NewScanner(os.Stdin)
	for n := 1; lines.Scan(); n++ {
		kind, file, _ := strings.Cut(how, ":")
		switch {
		case kind == "hang" || kind == "hang-later" && n > 1:
			for {
				if _, err := os.Stat(file); err != nil {
					return
				}
				time.Sleep(5 * time.Millisecond) // a driver that hangs
			}
		case kind == "die":
			os.Exit(127) // as a missing symbol does
		case kind == "text":
			fmt.Println("NVML says hello")
		case kind == "none":
			fmt.Println(`{"error":"not there","no_driver":true}`)
		default:
			fmt.Printf(`{"look":{"source":"nvml","gpus":[{"uuid":"GPU-%d"}]}}`+"\n", n)
		}
	}
}

func played(how string) *gpu.Child {
	return &gpu.Child{Command: []string{os.Args[0], childVariable + "=" + how}, Deadline: time.Minute}
}

func TestAChildIsAskedAgainAndAgain(t *testing.T) {
	t.Parallel()
	c := played("well")
	defer c.Close()
	for n := 1; n <= 3; n++ {
		r, err := c.Look(t.Context())
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("GPU-%d", n), r.Look.GPUs[0].UUID, "it is one process")
	}
	c.Close()
	r, err := c.Look(t.Context())
	require.NoError(t, err)
	require.Equal(t, "GPU-1", r.Look.GPUs[0].UUID, "it is another")
}

// A driver that hangs is left alone: no look waits for ever, no process is killed, and no
// more than three hang at once. Once it answers, looks go on.
func TestADriverThatHangs(t *testing.T) {
	t.Parallel()
	hangs := filepath.Join(t.TempDir(), "hangs")
	require.NoError(t, os.WriteFile(hangs, nil, 0o600))
	c := played("hang:" + hangs)
	c.Deadline = time.Millisecond
	for range 3 {
		_, err := c.Look(t.Context())
		require.ErrorContains(t, err, "did not answer within 1ms")
	}
	_, err := c.Look(t.Context())
	require.ErrorContains(t, err, "3 processes wait for it")
	require.NoError(t, os.Remove(hangs))
	require.Eventually(t, func() bool {
		_, err := c.Look(t.Context())
		return err != nil && !strings.Contains(err.Error(), "3 processes")
	}, time.Minute, time.Millisecond, "those that hung have ended")
}

func TestChildrenThatDoNotAnswer(t *testing.T) {
	t.Parallel()
	_, err := played("die").Look(t.Context())
	require.ErrorContains(t, err, "the NVML child ended")
	_, err = played("text").Look(t.Context())
	require.ErrorContains(t, err, "reading what the NVML child said")
	_, err = played("none").Look(t.Context())
	require.ErrorIs(t, err, gpu.ErrNoDriver)
	_, err = played("library:/nonexistent.so").Look(t.Context())
	require.ErrorIs(t, err, gpu.ErrNoDriver)
	require.Regexp(t, "^no NVIDIA driver found: (the library|this program) ", err.Error())
	_, err = (&gpu.Child{Command: []string{"/nonexistent/program"}}).Look(t.Context())
	require.ErrorContains(t, err, "starting the NVML child")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = played("well").Look(ctx)
	require.ErrorIs(t, err, context.Canceled)
}

func smi(script string) *gpu.SMI { return &gpu.SMI{Command: []string{"sh", "-c", script}} }

const a100 = "0, GPU-5f1d3c2a, 00000000:3B:00.0, 570.86.10, 81920, 1024, 37, 12, 45, 123.45, 400.00, 1410, 1593, " +
	"0x0000000000000044, 0, 3, 7, 9, 1, 4, 8, 16, Disabled, NVIDIA A100-SXM4-80GB"

func TestSMI(t *testing.T) {
	t.Parallel()
	r, err := smi(`printf '%s\n' '` + a100 + `' '1, GPU-b, 00000000:3C:00.0, 570.86.10, [N/A], [N/A], [N/A], [N/A], 40, ` +
		`[N/A], [N/A], [N/A], [N/A], [N/A], [N/A], [N/A], [N/A], [N/A], [N/A], ` +
		`[N/A], [N/A], [N/A], [N/A], NVIDIA GB10, with a comma' ''`).Look(t.Context())
	require.NoError(t, err)
	require.Equal(t, contract.NodeLook{Source: "nvidia-smi", Driver: "570.86.10", GPUs: []contract.LookGPU{
		{UUID: "GPU-5f1d3c2a", PCI: "0000:3b:00", Model: "NVIDIA A100-SXM4-80GB", GPUTelemetry: contract.GPUTelemetry{
			MemoryMiB: gpu.Of(81920), MemoryUsedMiB: gpu.Of(1024), Utilization: gpu.Of(37), MemoryBusy: gpu.Of(12),
			Temperature: gpu.Of(45), Power: gpu.Of(123.45), PowerLimit: gpu.Of(400.0), SMClock: gpu.Of(1410),
			MemoryClock: gpu.Of(1593), Throttle: []string{"power_cap", "hardware_thermal"}, ECCVolatile: gpu.Of(int64(0)),
			ECCAggregate: gpu.Of(int64(3)), ECCCorrectedVolatile: gpu.Of(int64(7)),
			ECCCorrectedAggregate: gpu.Of(int64(9)),
			PCIeGeneration:        gpu.Of(1), PCIeGenerationMax: gpu.Of(4), PCIeWidth: gpu.Of(8), PCIeWidthMax: gpu.Of(16),
			MIG: gpu.Of(false)}},
		{UUID: "GPU-b", PCI: "0000:3c:00", Index: 1, Model: "NVIDIA GB10, with a comma",
			GPUTelemetry: contract.GPUTelemetry{Temperature: gpu.Of(40)}},
	}}, r.Look, "what it does not have is absent, and never zero")
}

func TestSMIFailures(t *testing.T) {
	t.Parallel()
	_, err := (&gpu.SMI{Command: []string{"no-such-nvidia-smi"}}).Look(t.Context())
	require.ErrorIs(t, err, gpu.ErrNoDriver)
	_, err = smi(`echo "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."; exit 9`).
		Look(t.Context())
	require.ErrorIs(t, err, gpu.ErrNoDriver)
	_, err = smi(`echo broken >&2; exit 1`).Look(t.Context())
	require.ErrorContains(t, err, "broken")
	r, err := smi(`echo "No devices were found"; exit 6`).Look(t.Context())
	require.NoError(t, err)
	require.Empty(t, r.Look.GPUs)
	for _, row := range []string{"text", strings.Replace(a100, "0, GPU", "x, GPU", 1),
		strings.Replace(a100, "GPU-5", "5", 1)} {
		_, err = smi(`echo '` + row + `'`).Look(t.Context())
		require.ErrorContains(t, err, "reading nvidia-smi's row", row)
	}
}

func TestSMIThatHangsIsLeftAlone(t *testing.T) {
	t.Parallel()
	hangs := filepath.Join(t.TempDir(), "hangs")
	require.NoError(t, os.WriteFile(hangs, nil, 0o600))
	s := smi(`while [ -e '` + hangs + `' ]; do sleep 0.01; done`)
	s.Deadline = time.Millisecond
	for range 3 {
		_, err := s.Look(t.Context())
		require.ErrorContains(t, err, "did not answer within 1ms")
	}
	_, err := s.Look(t.Context())
	require.ErrorContains(t, err, "no other is started")
	require.NoError(t, os.Remove(hangs))
}

func TestSimulatedSaysSoAndTheSame(t *testing.T) {
	t.Parallel()
	one := &gpu.Simulated{Seed: "a", Count: 3, MemoryMiB: 1000}
	other := &gpu.Simulated{Seed: "a", Count: 3, MemoryMiB: 1000}
	for range 5 {
		x, err := one.Look(t.Context())
		require.NoError(t, err)
		y, err := other.Look(t.Context())
		require.NoError(t, err)
		require.Equal(t, x, y)
		require.Equal(t, "simulated", x.Look.Source)
		for _, g := range x.Look.GPUs {
			require.Contains(t, g.UUID, "GPU-SIM-")
			require.Contains(t, g.Model, "SIM")
			require.LessOrEqual(t, *g.Utilization, 100)
			require.LessOrEqual(t, *g.MemoryUsedMiB, 1000)
		}
	}
}

func TestSimulatedGPUsDoWhatRunsOnThem(t *testing.T) {
	t.Parallel()
	all := &gpu.Simulated{Seed: "a", Count: 2, MemoryMiB: 1000}
	r, err := all.Look(t.Context())
	require.NoError(t, err)
	for _, working := range []map[string]int{
		{r.Look.GPUs[1].UUID: -1},
		{r.Look.GPUs[1].UUID: 0}, // the UUID says which one it is
		{"GPU-PRETEND-1": 1, "GPU-PRETEND-2": -1, "GPU-PRETEND-3": 2},
	} {
		all.Working = func() map[string]int { return working }
		r, err = all.Look(t.Context())
		require.NoError(t, err)
		idle, works := r.Look.GPUs[0], r.Look.GPUs[1]
		require.Zero(t, *idle.Utilization+*idle.MemoryUsedMiB+*idle.Processes, "%v", working)
		require.Positive(t, *works.Utilization, "%v", working)
	}
}

const xid = "4,%d,%d,-;NVRM: Xid (PCI:0000:3B:00): %d, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n"

// A storm is one event with its number; what was read before is not read again.
func TestXIDsFromTheKernelsLog(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "kmsg")
	text := "6,1,100,-;Linux version 6.1\n SUBSYSTEM=pci\n" + fmt.Sprintf(xid, 2, 200, 31)
	for i := range 5000 {
		text += fmt.Sprintf(xid, 3+i, 300+i, 79)
	}
	text += "4,9000,1,-;NVRM: Xid (PCI:nonsense): 1, x\n4,9001,1,-;NVRM: loading\nno record at all\n"
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	take := func(after int64) (all []gpu.Event, seq int64) {
		k, err := gpu.OpenKernelLog(path, after)
		require.NoError(t, err)
		defer k.Close()
		merged := map[int]int{}
		require.Eventually(t, func() bool {
			var some []gpu.Event
			some, seq = k.Take()
			for _, e := range some {
				require.Equal(t, "0000:3b:00", e.PCI)
				merged[e.Code] += e.Count
			}
			return seq == 9001
		}, time.Minute, time.Millisecond)
		for _, code := range []int{31, 79} {
			if n := merged[code]; n > 0 {
				all = append(all, gpu.Event{PCI: "0000:3b:00", Code: code, Count: n})
			}
		}
		return all, seq
	}
	all, _ := take(-1)
	require.Equal(t, []gpu.Event{{PCI: "0000:3b:00", Code: 31, Count: 1}, {PCI: "0000:3b:00", Code: 79, Count: 5000}}, all)
	all, _ = take(2)
	require.Equal(t, []gpu.Event{{PCI: "0000:3b:00", Code: 79, Count: 5000}}, all)
	_, err := gpu.OpenKernelLog(path+".not", -1)
	require.Error(t, err)
}
