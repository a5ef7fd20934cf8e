package cli

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/node/buildtest"
)

var programPath = sync.OnceValue(func() string {
	return buildtest.Program("github.com/forewarm/forewarm/cli/testdata/program")
})

// program begins the command line in a process of its own, and returns what it prints.
func (w *town) program(args ...string) (*exec.Cmd, *os.File) {
	w.t.Helper()
	c := exec.CommandContext(w.t.Context(), programPath(), args...)
	c.Env = append(os.Environ(), "FOREWARM_API="+w.url, "FOREWARM_API_KEY="+w.secret)
	reads, writes, err := os.Pipe()
	require.NoError(w.t, err)
	c.Stdout = writes
	require.NoError(w.t, c.Start())
	require.NoError(w.t, writes.Close())
	return c, reads
}

// Whoever reads what a command says has read enough, or its terminal is closed: the command is hung up before the
// program ends, and does not wait for somebody to come back.
func TestExecHangsUpWhenItIsLeft(t *testing.T) {
	t.Parallel()
	w := newAttachedTower(t)
	for name, leave := range map[string]struct {
		how  func(c *exec.Cmd, out *os.File) error
		code int
	}{
		"nobody reads": {func(_ *exec.Cmd, out *os.File) error { return out.Close() }, 128 + int(syscall.SIGPIPE)},
		"no terminal":  {func(c *exec.Cmd, _ *os.File) error { return c.Process.Signal(syscall.SIGHUP) }, 3},
	} {
		c, out := w.program("exec", "heron", "--", "sh", "-c",
			"trap 'echo hung up >told; exit 3' HUP; echo up; while :; do echo more; sleep 0.01; done")
		line, err := bufio.NewReader(io.LimitReader(out, 3)).ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "up\n", line)
		began := time.Now()
		require.NoError(t, leave.how(c, out))
		_, _ = io.Copy(io.Discard, out)
		var status *exec.ExitError
		require.ErrorAs(t, c.Wait(), &status, name)
		require.Equal(t, leave.code, status.ExitCode(), name)
		require.Less(t, time.Since(began), 20*time.Second, name)
		_ = out.Close()
		require.Eventually(t, func() bool {
			told, _, _ := w.runCommand("exec", "heron", "--", "sh", "-c", "cat told 2>/dev/null && rm told; true")
			return strings.TrimSpace(told) == "hung up"
		}, 30*time.Second, 100*time.Millisecond, name)
	}
}
