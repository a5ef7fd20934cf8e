package work

import (
	"errors"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/forewarm/forewarm/contract/session"
	"github.com/forewarm/forewarm/node/launch"
)

// Process is a command that runs.
type Process struct {
	child    *launch.Child
	terminal *os.File // nil: it has pipes
	stdin    *os.File
	outputs  map[session.Channel]*os.File
	group    func() int // nil: its own
	closing  sync.Once
	sending  atomic.Int32 // pumps that wait for the holder
	read     atomic.Int64 // bytes of its output
}

// held is how many messages to the command's input wait for it to read: beyond them, what
// follows waits in the stream, signals too.
const held = 16

// obey does what the holder asks for, until the stream ends, which is later than the command
// does.
func (p *Process) obey(s Stream) {
	input := make(chan []byte, held)
	var writer sync.WaitGroup
	writer.Go(func() { p.feed(input) })
	defer writer.Wait()
	defer close(input)
	for {
		c, data, err := s.Receive()
		if err != nil {
			return
		}
		switch c {
		case session.Stdin:
			p.give(input, append([]byte(nil), data...))
		case session.Close:
			if len(data) == 1 && session.Channel(data[0]) == session.Stdin {
				p.give(input, nil)
			}
		case session.Resize:
			if size, err := session.ParseSize(data); err == nil {
				p.resize(size)
			}
		case session.Signal:
			if s, ok := signals[string(data)]; ok {
				p.signal(s)
			}
		case session.Leader:
			if s, ok := signals[string(data)]; ok {
				p.signalLeader(s)
			}
		default: // of a later version
		}
	}
}

// give hands data to the writer of the input, unless the command has ended.
func (p *Process) give(input chan<- []byte, data []byte) {
	select {
	case input <- data:
	case <-p.child.Exited():
	}
}

// feed writes to the command's input. Nil is its end.
func (p *Process) feed(input <-chan []byte) {
	ended := false
	for data := range input {
		switch {
		case ended: // the command reads no more, or was told that there is no more
		case data != nil:
			_, err := p.stdin.Write(data)
			ended = err != nil
		case p.terminal != nil:
			_, _ = p.terminal.Write([]byte{endOfTransmission})
		default:
			ended = true
			_ = p.stdin.Close()
		}
	}
}

// endOfTransmission is what a terminal takes for the end of its input, at a line's start.
const endOfTransmission = 4

// signals are those that a holder may send.
var signals = map[string]syscall.Signal{
	"HUP": syscall.SIGHUP, "INT": syscall.SIGINT, "QUIT": syscall.SIGQUIT, "TERM": syscall.SIGTERM,
	"KILL": syscall.SIGKILL, "USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2, "CONT": syscall.SIGCONT,
	"STOP": syscall.SIGSTOP, "TSTP": syscall.SIGTSTP, "WINCH": syscall.SIGWINCH,
}

// nameOf is the name of a signal, such as KILL.
func nameOf(s syscall.Signal) string { return strings.TrimPrefix(unix.SignalName(s), "SIG") }

// MostMemory is how much memory the command, or one of the processes that it waited for, had at once, in
// bytes; 0: it has not ended.
func (p *Process) MostMemory() int64 { return p.child.MostMemory() }

// Exited is closed once the command has ended.
func (p *Process) Exited() <-chan struct{} { return p.child.Exited() }

// signal sends a signal to the command's processes.
func (p *Process) signal(s syscall.Signal) {
	if p.group != nil {
		if group := p.group(); group > 1 && syscall.Kill(-group, s) == nil && s != syscall.SIGKILL {
			return
		}
	}
	p.child.Signal(s) // what runs it, too, if it is to be there no more
}

// signalLeader sends a signal to the command itself, and to nothing that it started.
func (p *Process) signalLeader(s syscall.Signal) {
	if p.group != nil {
		if group := p.group(); group > 1 && syscall.Kill(group, s) == nil {
			return
		}
	}
	p.child.SignalLeader(s)
}

func (p *Process) resize(s session.Size) {
	if p.terminal != nil {
		_ = pty.Setsize(p.terminal, &pty.Winsize{Cols: uint16(s.Columns), Rows: uint16(s.Rows)}) //nolint:gosec // bounded
	}
}

// outputState is how far the output of a command is.
type outputState struct {
	bytes   int64
	sending bool // the holder has yet to take some
}

func (p *Process) output() outputState {
	return outputState{bytes: p.read.Load(), sending: p.sending.Load() > 0}
}

// close closes what is ours of the command's streams.
func (p *Process) close() {
	p.closing.Do(func() {
		for _, f := range p.outputs {
			_ = f.Close()
		}
		if p.stdin != nil && p.terminal == nil {
			_ = p.stdin.Close()
		}
	})
}

// sender sends the output of several pumps in one stream.
type sender struct {
	mu     sync.Mutex
	stream Stream
}

func (s *sender) send(c session.Channel, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stream.Send(c, data)
}

// pump sends what a command writes, to its end.
func (s *sender) pump(p *Process, c session.Channel, from *os.File) {
	buf := make([]byte, session.MostData)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			p.sending.Add(1)
			p.read.Add(int64(n))
			failed := s.send(c, buf[:n])
			p.sending.Add(-1)
			if failed != nil {
				return // the session is over, which its receiver sees
			}
		}
		if err != nil { // a terminal ends with EIO
			if !errors.Is(err, os.ErrClosed) {
				_ = s.send(session.Close, []byte{byte(c)})
			}
			return
		}
	}
}

// end is how a command ended.
func (p *Process) end() session.End {
	select {
	case <-p.child.Exited():
	default: // its driver holds it, for example
		return session.End{ExitCode: 128 + int(syscall.SIGKILL), Signal: "KILL",
			Reason: "it was killed, and has not ended: the kernel holds it"}
	}
	status := p.child.Status()
	if status.Signaled() {
		return session.End{ExitCode: 128 + int(status.Signal()), Signal: nameOf(status.Signal())}
	}
	return session.End{ExitCode: status.ExitStatus()}
}
