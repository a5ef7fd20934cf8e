package companion

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a daemon that was started.
type process struct {
	cmd    *exec.Cmd
	began  time.Time
	exited chan struct{} // closed once its ProcessState is there
}

// exitRefused is the exit code of a daemon that the control plane does not believe.
const exitRefused = 4

func (p *process) refused() bool { return p.cmd.ProcessState.ExitCode() == exitRefused }

func (p *process) terminate() { _ = p.cmd.Process.Signal(syscall.SIGTERM) }
func (p *process) kill()      { _ = p.cmd.Process.Kill() }

// start starts the daemon of a node. One that was not here before, or that has just ended,
// gets a join token: it uses it if its key is worth nothing.
func (c *Companion) start(ctx context.Context, node Node, now time.Time) error {
	state := filepath.Join(c.StateDir, node.ID)
	args := []string{"run", "--url", c.URL, "--node", node.ID, "--state-dir", state,
		"--hold-dir", filepath.Join(c.HoldDir, node.ID), "--log-level", c.LogLevel, "--log-format", c.LogFormat,
		"--plain-http"} // it stays on this machine
	if node.Simulate > 0 {
		args = append(args, "--simulate", strconv.Itoa(node.Simulate), "--simulate-seed", node.Seed)
	}
	if c.SharedUser {
		args = append(args, "--shared-user")
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), c.Program, args...) //nolint:gosec // our own program
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = environment(), c.Output, c.Output, attributes()
	_, err := os.Stat(state)
	if _, ended := c.next[node.ID]; ended || errors.Is(err, fs.ErrNotExist) {
		token, err := c.Token(ctx, node.ID)
		if err != nil {
			return fmt.Errorf("making its join token: %w", err)
		}
		cmd.Args = append(cmd.Args, "--token-file", "-")
		cmd.Stdin = strings.NewReader(token.Reveal())
	}
	p := &process{cmd: cmd, began: now, exited: make(chan struct{})}
	started := make(chan error)
	go func() { // the daemon is told when the thread that started it ends
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ended is in its ProcessState
			close(p.exited)
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	c.running[node.ID] = p
	return nil
}

// environment is what a daemon needs of this process's: nothing that is a secret of the
// control plane.
func environment() []string {
	var env []string
	for _, name := range []string{"PATH", "HOME", "LANG", "TZ", "TMPDIR", "LD_LIBRARY_PATH"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}
