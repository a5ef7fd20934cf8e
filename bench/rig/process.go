package rig

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Process is something that serves in a process of its own.
type Process struct {
	Kind Kind
	URL  string
	cmd  *exec.Cmd
	in   io.WriteCloser

	killed bool // by End
}

// Start starts this program again, to serve the kind on the installation. A
// profile that is not empty names the file for its CPU profile.
func Start(ctx context.Context, kind Kind, i *Installation, profile string) (*Process, error) {
	return StartAt(ctx, kind, i, profile, "127.0.0.1:0")
}

// StartAt is Start for a process that listens at an address, such as that of one that was
// killed.
func StartAt(ctx context.Context, kind Kind, i *Installation, profile, address string) (*Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	p := &Process{Kind: kind, cmd: exec.CommandContext(ctx, self)} //nolint:gosec // this very program
	p.cmd.Env = append(os.Environ(), kindVariable+"="+string(kind), databaseVariable+"="+i.URL,
		pepperVariable+"="+i.pepper, profileVariable+"="+profile, listenVariable+"="+address)
	p.cmd.Stderr = os.Stderr
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", kind, err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", kind, err)
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", kind, err)
	}
	address, err = bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s did not begin to serve", kind), p.Stop())
	}
	p.URL = "http://" + strings.TrimSpace(address)
	return p, nil
}

// Time is the processor time that the process has used.
func (p *Process) Time() time.Duration { return ProcessTime(p.cmd.Process.Pid) }

// Stop has the process end and waits until it has.
func (p *Process) Stop() error {
	err := p.in.Close()
	if p.killed {
		return nil
	}
	if werr := p.cmd.Wait(); werr != nil {
		return fmt.Errorf("%s: %w", p.Kind, werr)
	}
	return err
}

// Signal sends the process a signal; 0 sends none.
func (p *Process) Signal(signal syscall.Signal) error {
	if signal == 0 {
		return nil
	}
	if err := p.cmd.Process.Signal(signal); err != nil {
		return fmt.Errorf("%s: %w", p.Kind, err)
	}
	return nil
}

// End makes sure that a process can end that was sent a signal: one that was killed
// is not waited for any more, and one that was paused goes on.
func (p *Process) End(signal syscall.Signal) error {
	switch signal {
	case syscall.SIGKILL:
		_ = p.cmd.Wait() // says that it was killed
		p.killed = true
	case syscall.SIGSTOP:
		return p.Signal(syscall.SIGCONT)
	}
	return nil
}

// StopAll stops processes, the last started first.
func StopAll(all []*Process) error {
	var errs []error
	for i := len(all) - 1; i >= 0; i-- {
		errs = append(errs, all[i].Stop())
	}
	return errors.Join(errs...)
}
