//go:build linux && cgo

package discover

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// libraryVariable names the library that a child process shall ask.
const libraryVariable = "FOREWARM_TEST_NVML"

// TestMain turns the test binary into a program that asks one library and
// prints the answer. A process can know only one: its first call of a function
// binds the name for good, whatever library is loaded later.
func TestMain(m *testing.M) {
	path, child := os.LookupEnv(libraryVariable)
	if !child {
		os.Exit(m.Run())
	}
	var group sync.WaitGroup
	for range 4 { // concurrent callers must not meet inside the library
		group.Go(func() { _, _ = NVML{Library: path}.Devices(context.Background()) })
	}
	group.Wait()
	source := FirstOf{Library: NVML{Library: path},
		Command: SMI{Command: []string{"sh", "-c", "echo '7, GPU-smi, 1, 0, smi'"}}}
	devices, err := source.Devices(context.Background())
	fmt.Print(devices, " ", err, " ", errors.Is(err, ErrNoDriver))
	os.Exit(0)
}

// askDriver builds the fake driver library with the C compiler that cgo needs anyway,
// and returns what a process that loads it answers.
func askDriver(t *testing.T, flags ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "libnvidia-ml.so.1")
	output, err := exec.CommandContext(t.Context(), "gcc",
		append(flags, "-shared", "-fPIC", "-o", path, "testdata/nvml.c")...).CombinedOutput()
	require.NoError(t, err, string(output))
	return askFile(t, path)
}

func askFile(t *testing.T, path string) string {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), libraryVariable+"="+path)
	output, err := child.CombinedOutput()
	require.NoError(t, err, string(output))
	return string(output)
}

func TestNVML(t *testing.T) {
	t.Parallel()
	require.Equal(t, "[{GPU-00000000-0000-0000-0000-000000000001 0 NVIDIA H100 80GB HBM3 81559} "+
		"{GPU-00000000-0000-0000-0000-000000000002 1 NVIDIA H100 80GB HBM3 0}] <nil> false", askDriver(t))
}

func TestNVMLOfAGPUThatIsDivided(t *testing.T) {
	t.Parallel()
	require.Equal(t, "[{MIG-1 0 NVIDIA H100 80GB HBM3 MIG 1g.10gb 9856} {MIG-2 1 NVIDIA H100 80GB HBM3 MIG 1g.10gb 9856} "+
		"{GPU-00000000-0000-0000-0000-000000000002 2 NVIDIA H100 80GB HBM3 0}] <nil> false", askDriver(t, "-DMIG"))
}

func TestNVMLLeavesOutDamagedMemory(t *testing.T) {
	t.Parallel()
	require.Equal(t, "[{GPU-00000000-0000-0000-0000-000000000002 1 NVIDIA H100 80GB HBM3 0}] <nil> false",
		askDriver(t, "-DECC=2"))
}

func TestNVMLFailures(t *testing.T) {
	t.Parallel()
	require.Equal(t, "[{GPU-smi 7 smi 1}] <nil> false", askFile(t, "/nonexistent/libnvidia-ml.so.1"))
	require.Equal(t,
		"[] no NVIDIA driver found on this machine: the library is there, the kernel module is not loaded true",
		askDriver(t, "-DINIT=9"))
	require.Equal(t, "[] starting NVML: error 999 false", askDriver(t, "-DINIT=999"))
	// Calling the missing function would end the process.
	require.Contains(t, askDriver(t, "-DOLD"), "the NVIDIA driver is too old")
}

func TestNVMLHonoursTheContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := NVML{Library: "/nonexistent/libnvidia-ml.so.1"}.Devices(ctx)
	require.ErrorIs(t, err, context.Canceled)
}
