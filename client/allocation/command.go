package allocation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/forewarm/forewarm/client/session"
	wire "github.com/forewarm/forewarm/contract/session"
)

// Cmd is a command on a node of what is held, through the node's daemon. It is used as an
// exec.Cmd is: set its fields, then call Run, Output, or Start and Wait, once.
type Cmd struct {
	// Args are the program and its arguments; empty: a shell, which reads Stdin.
	Args []string
	// Dir is where it begins; empty: the allocation's folder on the node.
	Dir string
	// Env are variables as NAME=VALUE, beside those that Held.Env tells, which go first.
	Env []string
	// Node is the rank of the node.
	Node int

	Stdin  io.Reader // nil: nothing to read
	Stdout io.Writer // nil: dropped
	Stderr io.Writer // nil: dropped

	ctx     context.Context //nolint:containedctx // as exec.Cmd has it
	held    *Held
	signals chan string
	done    chan struct{} // closed when it has ended; nil: it was not started
	err     error         // how; set before done is closed
}

// ExitError says that a command ended without success.
type ExitError struct {
	Node   int    // its rank
	Code   int    // its exit code; 128 and the signal's number if one ended it
	Signal string // such as KILL; empty: none ended it
}

// Error names the exit code, or the signal.
func (e *ExitError) Error() string {
	if e.Signal != "" {
		return fmt.Sprintf("node %d: signal: %s", e.Node, e.Signal)
	}
	return fmt.Sprintf("node %d: exit status %d", e.Node, e.Code)
}

// ExitCode is the command's exit code.
func (e *ExitError) ExitCode() int { return e.Code }

// Exec returns a command on the first node. When the context ends before the command does, it
// is hung up.
func (h *Held) Exec(ctx context.Context, args ...string) *Cmd {
	return &Cmd{Args: args, ctx: ctx, held: h, signals: make(chan string)}
}

// Run runs the command, and returns when it has ended. The error is nil if its exit code is 0, an
// *ExitError if it is another; a *client.Error where the server refused, a *session.EndError
// where the command did not end by itself, and session.ErrCut where nobody knows.
func (c *Cmd) Run() error {
	if err := c.Start(); err != nil {
		return err
	}
	return c.Wait()
}

// Output runs the command, and returns what it wrote to its standard output.
func (c *Cmd) Output() ([]byte, error) {
	if c.Stdout != nil {
		return nil, errors.New("the command's Stdout is set already")
	}
	var out bytes.Buffer
	c.Stdout = &out
	err := c.Run()
	return out.Bytes(), err
}

// Start begins the command, and does not wait for it. That it could not be started is told by Wait.
func (c *Cmd) Start() error {
	if c.done != nil {
		return errors.New("the command was started already")
	}
	env, err := c.environment()
	if err != nil {
		return err
	}
	c.done = make(chan struct{})
	go func() {
		defer close(c.done)
		c.err = c.run(session.Command{Node: c.Node, Stdin: c.Stdin, Stdout: c.Stdout, Stderr: c.Stderr,
			Signals: c.signals, Command: wire.Command{Arguments: c.Args, Directory: c.Dir, Environment: env}})
	}()
	return nil
}

// Wait waits until a command that was started has ended, and returns what Run does.
func (c *Cmd) Wait() error {
	if c.done == nil {
		return errors.New("the command was not started")
	}
	<-c.done
	return c.err
}

// Signal sends the command's process group a signal by its name, such as INT.
func (c *Cmd) Signal(name string) error {
	if c.done == nil {
		return errors.New("the command was not started")
	}
	select {
	case c.signals <- name:
		return nil
	case <-c.done:
		return errors.New("the command has ended")
	}
}

func (c *Cmd) environment() (map[string]string, error) {
	env := map[string]string{}
	for _, v := range c.Env {
		name, value, ok := strings.Cut(v, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("the variable %q must be NAME=VALUE", v)
		}
		env[name] = value
	}
	return env, nil
}

// run runs the command.
func (c *Cmd) run(command session.Command) error {
	end, err := c.held.server.Run(c.ctx, c.held.Allocation().ID, command)
	if err == nil && end.ExitCode != 0 {
		err = &ExitError{Node: c.Node, Code: end.ExitCode, Signal: end.Signal}
	}
	return err
}
