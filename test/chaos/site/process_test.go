package site

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// newProgram runs a line of shell as a process of a site.
func newProgram(t *testing.T, line string) *Process {
	t.Helper()
	n := newProcessGroup()
	p := &Process{Name: "test", group: n, log: filepath.Join(t.TempDir(), "log"),
		command: func() *exec.Cmd { return exec.Command("sh", "-c", line) }}
	t.Cleanup(func() { p.Kill(); n.closeGroup() })
	return p
}

// kernelState is the letter that the kernel has for the process.
func (p *Process) kernelState(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.life.cmd.Process.Pid))
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(text), ") ")
	return rest[:1]
}

func TestAProcessIsPausedResumedAndKilled(t *testing.T) {
	t.Parallel()
	p := newProgram(t, "exec sleep 1000")
	require.NoError(t, p.Start())
	require.NoError(t, p.Pause())
	require.Eventually(t, func() bool { return p.kernelState(t) == "T" }, time.Minute, time.Millisecond)
	require.NoError(t, p.Resume())
	require.Eventually(t, func() bool { return p.kernelState(t) != "T" }, time.Minute, time.Millisecond)
	require.NoError(t, p.Pause())
	p.Kill() // also while it is paused
	require.Nil(t, p.life)
	require.NoError(t, p.Start())
	require.Zero(t, p.Deaths(), "its end was asked for")
}

func TestAProcessThatEndsByItselfIsStartedAgain(t *testing.T) {
	t.Parallel()
	p := newProgram(t, "echo here")
	require.NoError(t, p.Start())
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(p.Log())
		return err == nil && strings.Count(string(text), "here") > 1
	}, time.Minute, 20*time.Millisecond)
	require.Positive(t, p.Deaths())
}
