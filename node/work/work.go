// Package work runs what a session asks for: a command in the place of a hold, or a
// connection to a port of the node.
//
// The session's stream is the only back-pressure: what is sent blocks while the holder does
// not read, and what is received waits while the command does not read.
package work

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/forewarm/forewarm/contract/session"
	"github.com/forewarm/forewarm/node/hold"
)

// Stream carries the messages of a session. Send and Receive may be called at the same
// time, each by one goroutine.
type Stream interface {
	// Send sends data, which it does not keep. It blocks while the other side does not read.
	Send(c session.Channel, data []byte) error
	// Receive returns the next message, whose data is valid until the next call. An error
	// says that the session is over.
	Receive() (session.Channel, []byte, error)
}

// Terminal is what the holder sees of a terminal.
type Terminal struct {
	Name string // its kind, such as xterm-256color
	Size session.Size
}

// Command is a program to run.
type Command struct {
	Arguments   []string // the program first; empty: a shell
	Directory   string   // empty: the home of the place
	Environment map[string]string
	Terminal    *Terminal // nil: pipes
}

// Runner runs the work of sessions. Its times are how long it waits for what should come by
// itself.
type Runner struct {
	HangUp    time.Duration // after HUP, until TERM
	Terminate time.Duration // after TERM, until KILL
	Kill      time.Duration // after KILL, until a command is given up that hangs in the kernel
	Drain     time.Duration // after a command's exit, for output that others hold open
}

// Default waits as an administrator would.
var Default = Runner{HangUp: 5 * time.Second, Terminate: 10 * time.Second, Kill: 5 * time.Second,
	Drain: 2 * time.Second}

// Carry carries a session with a command until that has ended, and returns how. When the
// context or the stream ends first, the command is hung up, as by ssh: HUP, then TERM, then
// KILL to its process group.
func (r Runner) Carry(ctx context.Context, p *Process, s Stream) session.End {
	out := &sender{stream: s}
	var pumps sync.WaitGroup
	for c, file := range p.outputs {
		pumps.Go(func() { out.pump(p, c, file) })
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		p.obey(s)
	}()
	reason := r.await(ctx, p, over, &pumps)
	end := p.end()
	end.Reason = cmp.Or(end.Reason, reason)
	return end
}

// await returns once the command has ended and its output is sent, or given up.
func (r Runner) await(ctx context.Context, p *Process, over <-chan struct{}, pumps *sync.WaitGroup) (reason string) {
	cut := false
	select {
	case <-p.exited:
	case <-ctx.Done():
		cut = true
	case <-over:
		cut = true
	}
	if cut {
		r.hangUp(p)
		reason = "it was hung up: its session ended"
	}
	if !r.drain(ctx, p, over, pumps) && !cut {
		reason = "processes that it started still hold its output open"
	}
	p.close()
	return reason
}

// mostLeft bounds what a command that has ended can have left in a pipe, in bytes.
const mostLeft = 1 << 20

// drain waits until all that a command wrote is sent, however slowly the holder reads. It
// returns false if others hold the output open and write nothing, or more than the command
// can have left.
func (r Runner) drain(ctx context.Context, p *Process, over <-chan struct{}, pumps *sync.WaitGroup) bool {
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		pumps.Wait()
	}()
	tick := time.NewTicker(r.Drain)
	defer tick.Stop()
	atExit := p.output()
	for before := atExit; ; {
		select {
		case <-sent:
			return true
		case <-ctx.Done():
			return true
		case <-over:
			return true
		case <-tick.C:
		}
		now := p.output()
		if idle := now == before && !now.sending; idle || now.bytes-atExit.bytes > mostLeft {
			return false
		}
		before = now
	}
}

// hangUp ends the process group of a command, from the mildest signal to KILL.
func (r Runner) hangUp(p *Process) {
	for _, step := range []struct {
		signal syscall.Signal
		wait   time.Duration
	}{{syscall.SIGHUP, r.HangUp}, {syscall.SIGTERM, r.Terminate}, {syscall.SIGKILL, r.Kill}} {
		p.signal(step.signal)
		p.signal(syscall.SIGCONT) // what is stopped takes no signal but KILL
		timer := time.NewTimer(step.wait)
		select {
		case <-p.exited:
			timer.Stop()
			return // what of the group is left has been told, and goes on if it will, as behind nohup
		case <-timer.C:
		}
	}
}

// Start starts a command in a place. Its caller carries a session with it.
func Start(place hold.Place, c Command) (*Process, error) {
	arguments := c.Arguments
	if len(arguments) == 0 {
		arguments = []string{shell(), "-l"}
	}
	env := environment(place, c)
	program, err := find(arguments[0], env)
	if err != nil {
		return nil, err
	}
	cmd := &exec.Cmd{Path: program, Args: arguments, Env: env, Dir: c.Directory,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGHUP}}
	if !filepath.IsAbs(cmd.Dir) { // the daemon's own folder is nobody's business
		cmd.Dir = filepath.Join(place.Home, cmd.Dir)
	}
	if place.OwnUser {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: place.UID, Gid: place.GID}
	}
	if place.Cgroup != "" {
		dir, err := os.Open(place.Cgroup)
		if err != nil {
			return nil, fmt.Errorf("opening the cgroup of the allocation: %w", err)
		}
		defer func() { _ = dir.Close() }()
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(dir.Fd()) //nolint:gosec // a descriptor is small
	}
	keepInherited()
	heedSignals()
	p := &Process{cmd: cmd, exited: make(chan struct{}), outputs: map[session.Channel]*os.File{}}
	theirs, err := p.connect(place, c.Terminal)
	defer closeAll(theirs)
	if err == nil {
		err = p.run()
	}
	if err != nil {
		p.close()
		if program != arguments[0] && c.Directory == "" && errors.Is(err, fs.ErrPermission) {
			return nil, notFoundError(arguments[0], env) // it was found where the command's user may not look
		}
		return nil, explainStart(arguments[0], c.Directory, err)
	}
	return p, nil
}

// run starts the command on a thread that stays until it has ended: the kernel hangs the
// command up with the thread, and so with a daemon that is killed.
func (p *Process) run() error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // how it ended is in its ProcessState
			close(p.exited)
		}
	}()
	return <-started
}

// explainStart says why a program was not started, and where.
func explainStart(program, directory string, err error) error {
	if failed, ok := errors.AsType[*os.PathError](err); ok {
		err = failed.Err // its path is that of the program, whatever was not there
	}
	if directory != "" {
		return fmt.Errorf("starting %s in the folder %s: %w", program, directory, err)
	}
	return fmt.Errorf("starting %s: %w", program, err)
}

// keepInherited keeps the files that the daemon has inherited from whoever started it, as far
// as the kernel can (5.11 and later). What Go opens, it keeps itself.
var keepInherited = sync.OnceFunc(func() {
	_ = unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
})

// heedSignals keeps commands from inheriting that the daemon was started to ignore signals, as by
// nohup: they could not be hung up. What the daemon ignored, it goes on ignoring.
var heedSignals = sync.OnceFunc(func() {
	for _, s := range signals {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s) // a handler is none in a new program
		}
	}
})

// connect gives the command its standard streams, and returns the ends that are its own.
func (p *Process) connect(place hold.Place, t *Terminal) (theirs []*os.File, err error) {
	if t != nil {
		ours, tty, err := pty.Open()
		if err != nil {
			return nil, fmt.Errorf("opening a terminal: %w", err)
		}
		p.terminal, p.stdin, p.outputs[session.Stdout] = ours, ours, ours
		p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = tty, tty, tty
		p.cmd.SysProcAttr.Setctty = true
		p.resize(t.Size)
		if place.OwnUser {
			err = tty.Chown(int(place.UID), int(place.GID))
		}
		return []*os.File{tty}, err
	}
	in, ours, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("opening a pipe: %w", err)
	}
	p.cmd.Stdin, p.stdin, theirs = in, ours, append(theirs, in)
	for _, c := range []session.Channel{session.Stdout, session.Stderr} {
		ours, out, err := os.Pipe()
		if err != nil {
			return theirs, fmt.Errorf("opening a pipe: %w", err)
		}
		p.outputs[c], theirs = ours, append(theirs, out)
		if c == session.Stdout {
			p.cmd.Stdout = out
		} else {
			p.cmd.Stderr = out
		}
	}
	return theirs, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}
