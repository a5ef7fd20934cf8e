// Package work runs what a session asks for: a command in the place of a hold, or a
// connection to a port of the node.
//
// The session's stream is the only back-pressure: what is sent blocks while the holder does
// not read, and what is received waits while the command does not read.
package work

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/forewarm/forewarm/contract/session"
	"github.com/forewarm/forewarm/node/hold"
	"github.com/forewarm/forewarm/node/launch"
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
	// Group is the process group that gets its signals, where a program runs it elsewhere; 0: there is none yet.
	// Nil: its own.
	Group func() int `json:"-"`
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
	if refusal := p.child.Close(); refusal != "" {
		return session.End{Code: session.NotStarted, Reason: refusal}
	}
	end.Reason = cmp.Or(end.Reason, reason)
	return end
}

// await returns once the command has ended and its output is sent, or given up.
func (r Runner) await(ctx context.Context, p *Process, over <-chan struct{}, pumps *sync.WaitGroup) (reason string) {
	cut := false
	select {
	case <-p.child.Exited():
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
		case <-p.child.Exited():
			timer.Stop()
			return // what of the group is left has been told, and goes on if it will, as behind nohup
		case <-timer.C:
		}
	}
}

// Start starts a command in a place. Its caller carries a session with it, whose end says so if
// the command could not be started after all.
func Start(place hold.Place, c Command) (*Process, error) {
	arguments := c.Arguments
	if len(arguments) == 0 {
		arguments = []string{shell(), "-l"}
	}
	what := launch.Command{Arguments: arguments, Environment: environment(place, c), Directory: c.Directory,
		Home: place.Home, Cgroup: place.Cgroup, Mark: place.Mark}
	if !filepath.IsAbs(what.Directory) { // the daemon's own folder is nobody's business
		what.Directory = filepath.Join(place.Home, what.Directory)
	}
	if place.OwnUser {
		what.User = &launch.User{UID: place.UID, GID: place.GID}
	}
	keepInherited()
	heedSignals()
	p := &Process{outputs: map[session.Channel]*os.File{}, group: c.Group}
	theirs, err := p.connect(&what, c.Terminal)
	defer closeAll(theirs)
	switch {
	case err != nil:
	case place.Alone:
		p.child, err = place.Launcher.StartAlone(what)
	default:
		p.child, err = place.Launcher.Start(what)
	}
	if err != nil {
		p.close()
		return nil, err
	}
	return p, nil
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
func (p *Process) connect(c *launch.Command, t *Terminal) (theirs []*os.File, err error) {
	if t != nil {
		ours, tty, err := pty.Open()
		if err != nil {
			return nil, fmt.Errorf("opening a terminal: %w", err)
		}
		p.terminal, p.stdin, p.outputs[session.Stdout] = ours, ours, ours
		c.In, c.Out, c.Err, c.Terminal = tty, tty, tty, true
		p.resize(t.Size)
		if c.User != nil {
			err = tty.Chown(int(c.User.UID), int(c.User.GID))
		}
		return []*os.File{tty}, err
	}
	in, ours, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("opening a pipe: %w", err)
	}
	c.In, p.stdin, theirs = in, ours, append(theirs, in)
	for channel, end := range map[session.Channel]**os.File{session.Stdout: &c.Out, session.Stderr: &c.Err} {
		ours, out, err := os.Pipe()
		if err != nil {
			return theirs, fmt.Errorf("opening a pipe: %w", err)
		}
		p.outputs[channel], *end, theirs = ours, out, append(theirs, out)
	}
	return theirs, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}
