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
)

// Process is something that serves in a process of its own.
type Process struct {
	Kind Kind
	URL  string
	cmd  *exec.Cmd
	in   io.WriteCloser
}

// Start starts this program again, to serve the kind on the installation. A
// profile that is not empty names the file for its CPU profile.
func Start(ctx context.Context, kind Kind, i *Installation, profile string) (*Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	p := &Process{Kind: kind, cmd: exec.CommandContext(ctx, self)} //nolint:gosec // this very program
	p.cmd.Env = append(os.Environ(), kindVariable+"="+string(kind), databaseVariable+"="+i.URL,
		pepperVariable+"="+i.pepper, profileVariable+"="+profile)
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
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s did not begin to serve", kind), p.Stop())
	}
	p.URL = "http://" + strings.TrimSpace(address)
	return p, nil
}

// Stop has the process end and waits until it has.
func (p *Process) Stop() error {
	err := p.in.Close()
	if werr := p.cmd.Wait(); werr != nil {
		return fmt.Errorf("%s: %w", p.Kind, werr)
	}
	return err
}

// StopAll stops processes, the last started first.
func StopAll(all []*Process) error {
	var errs []error
	for i := len(all) - 1; i >= 0; i-- {
		errs = append(errs, all[i].Stop())
	}
	return errors.Join(errs...)
}
