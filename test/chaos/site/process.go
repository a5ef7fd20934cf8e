package site

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// restartAfter is how long a process that ended by itself stays away, as under
// a service manager.
const restartAfter = time.Second

// ending is how long a process may take to end when it is asked to.
const ending = time.Minute

// Process is a program that is started again whenever it ends by itself. It is
// safe for concurrent use.
type Process struct {
	Name    string
	group   processGroup
	command func() *exec.Cmd // a fresh one for each life
	log     string

	mu      sync.Mutex
	life    *life // nil while it is not meant to run
	deaths  int   // that nobody asked for
	retired bool  // it never runs again
}

// life is one run of the program.
type life struct {
	cmd  *exec.Cmd
	done chan struct{}
}

// Start starts the program and keeps it running, unless it is retired.
func (p *Process) Start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.life != nil || p.retired {
		return nil
	}
	return p.beginLife()
}

func (p *Process) beginLife() error {
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644) //nolint:gosec // below our own folder
	if err != nil {
		return fmt.Errorf("opening the log of %s: %w", p.Name, err)
	}
	defer out.Close()
	l := &life{cmd: p.command(), done: make(chan struct{})}
	l.cmd.Stdout, l.cmd.Stderr = out, out
	if err := p.group.startCommand(l.cmd); err != nil {
		return fmt.Errorf("starting %s: %w", p.Name, err)
	}
	p.life = l
	go p.followLife(l)
	return nil
}

// followLife waits for the end of a life, and begins another if nobody asked for it.
func (p *Process) followLife(l *life) {
	_ = l.cmd.Wait() // its code is nobody's business: it is started again
	close(l.done)
	time.Sleep(restartAfter)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.life != l {
		return
	}
	p.deaths++
	if p.beginLife() != nil {
		p.life = nil
	}
}

// Kill ends the process as a power cut would, and leaves it away.
func (p *Process) Kill() { p.endLife(syscall.SIGKILL) }

// Stop asks the process to end, and leaves it away.
func (p *Process) Stop() { p.endLife(syscall.SIGTERM) }

// Retire kills the process for good: whoever starts it later comes too late.
func (p *Process) Retire() {
	p.mu.Lock()
	p.retired = true
	p.mu.Unlock()
	p.Kill()
}

func (p *Process) endLife(sig syscall.Signal) {
	p.mu.Lock()
	l := p.life
	p.life = nil
	p.mu.Unlock()
	if l == nil {
		return
	}
	_ = l.cmd.Process.Signal(sig) // it may be over
	select {
	case <-l.done:
	case <-time.After(ending):
		_ = l.cmd.Process.Kill()
		<-l.done
	}
}

// Pause stops the process in the middle of whatever it does, until Resume.
func (p *Process) Pause() error { return p.signalLife(syscall.SIGSTOP) }

// Resume lets a paused process go on.
func (p *Process) Resume() error { return p.signalLife(syscall.SIGCONT) }

func (p *Process) signalLife(sig syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.life == nil {
		return nil
	}
	if err := p.life.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("sending %v to %s: %w", sig, p.Name, err)
	}
	return nil
}

// Deaths is how often the process ended without being told to.
func (p *Process) Deaths() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.deaths
}

// Log is the file that the process writes to.
func (p *Process) Log() string { return p.log }

// retryUntil asks again and again until there is no error, or the time is over.
func retryUntil(ctx context.Context, within time.Duration, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return fmt.Errorf("not within %v: %w", within, err)
		}
	}
}
