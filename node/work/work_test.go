package work_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract/session"
	"github.com/forewarm/forewarm/internal/leaktest"
	"github.com/forewarm/forewarm/node/hold"
	"github.com/forewarm/forewarm/node/launch/launchtest"
	"github.com/forewarm/forewarm/node/work"
)

func TestMain(m *testing.M) { leaktest.VerifyTestMain(m) }

// message is one of a session.
type message struct {
	channel session.Channel
	data    string
}

// pair is a stream whose other side is the test.
type pair struct {
	toNode   chan message
	fromNode chan message
	over     chan struct{}
	once     sync.Once
}

func newPair() *pair {
	return &pair{toNode: make(chan message), fromNode: make(chan message), over: make(chan struct{})}
}

func (p *pair) end() { p.once.Do(func() { close(p.over) }) }

func (p *pair) Send(c session.Channel, data []byte) error {
	select {
	case p.fromNode <- message{c, string(data)}:
		return nil
	case <-p.over:
		return io.ErrClosedPipe
	}
}

func (p *pair) Receive() (session.Channel, []byte, error) {
	select {
	case m := <-p.toNode:
		return m.channel, []byte(m.data), nil
	case <-p.over:
		return 0, nil, io.EOF
	}
}

// patient waits for what comes by itself, however slow the machine is: only what hangs has it wait to the end.
var patient = work.Runner{HangUp: time.Minute, Terminate: time.Minute, Kill: time.Minute, Drain: time.Minute}

// hasty is for what does not come by itself, for which it waits to the end.
var hasty = work.Runner{HangUp: 200 * time.Millisecond, Terminate: 200 * time.Millisecond, Kill: time.Minute,
	Drain: 100 * time.Millisecond}

// ran is what came of a session.
type ran struct {
	out map[session.Channel]string
	end session.End
}

// carry runs a command to its end.
func carry(ctx context.Context, r work.Runner, place hold.Place, c work.Command, s work.Stream) session.End {
	p, err := work.Start(place, c)
	if err != nil {
		return session.End{Code: session.NotStarted, Reason: err.Error()}
	}
	return r.Carry(ctx, p, s)
}

// run runs a command to its end, and sends it messages.
func run(t *testing.T, place hold.Place, c work.Command, send ...message) ran {
	t.Helper()
	p := newPair()
	done := make(chan session.End, 1)
	go func() { done <- carry(t.Context(), patient, place, c, p) }()
	go func() {
		for _, m := range send {
			select {
			case p.toNode <- m:
			case <-p.over:
				return
			}
		}
	}()
	got := ran{out: map[session.Channel]string{}}
	for {
		select {
		case m := <-p.fromNode:
			if m.channel != session.Close {
				got.out[m.channel] += m.data
			}
		case got.end = <-done:
			p.end()
			return got
		}
	}
}

func newPlace(t *testing.T) hold.Place {
	return hold.Place{UID: uint32(os.Getuid()), GID: uint32(os.Getgid()), Home: t.TempDir(),
		Environment: []string{"CUDA_VISIBLE_DEVICES=GPU-1", fmt.Sprintf("FOREWARM_ALLOCATION=alc_%d", os.Getpid())},
		Launcher:    launchtest.Launcher()} // another package's tests may end all that bears the name of one of theirs
}

func shell(script string) work.Command { return work.Command{Arguments: []string{"sh", "-c", script}} }

func TestACommandEndsWithItsOutputAndItsCode(t *testing.T) {
	for script, want := range map[string]ran{
		"echo out; echo err >&2; exit 7": {map[session.Channel]string{1: "out\n", 2: "err\n"},
			session.End{ExitCode: 7}},
		"kill -KILL $$":                         {map[session.Channel]string{}, session.End{ExitCode: 137, Signal: "KILL"}},
		"cat":                                   {map[session.Channel]string{1: "typed"}, session.End{}},
		"trap 'echo told; exit 3' INT; kill $$": {map[session.Channel]string{}, session.End{ExitCode: 143, Signal: "TERM"}},
		"cat >/dev/null; head -c 3000000 </dev/zero": {map[session.Channel]string{
			1: strings.Repeat("\x00", 3000000)}, session.End{}},
	} {
		require.Equal(t, want, run(t, newPlace(t), shell(script), message{session.Stdin, "typed"},
			message{session.Close, "\x00"}), script)
	}
}

// What a command says arrives, however soon after its start it ends, and whatever comes for it meanwhile.
func TestNothingIsLostOfACommandThatEndsAtOnce(t *testing.T) {
	for range 300 {
		got := run(t, newPlace(t), work.Command{Arguments: []string{"echo", "word"}}, message{session.Close, "\x00"},
			message{session.Stdin, "late"}, message{session.Close, "\x00"})
		require.Equal(t, "word\n", got.out[session.Stdout])
	}
}

// Nothing of the daemon's environment or open files reaches a command, and what the place says goes before what
// the holder wants.
func TestACommandFindsItsPlaceAndNothingOfTheDaemons(t *testing.T) {
	t.Setenv("FOREWARM_NODE_SECRET", "of the daemon")
	file, err := os.Open("/proc/self/status")
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	place := newPlace(t)
	c := shell("pwd; env; ls /proc/$$/fd")
	c.Environment = map[string]string{"MINE": "1", "CUDA_VISIBLE_DEVICES": "GPU-of-another"}
	out := run(t, place, c).out[session.Stdout]
	require.True(t, strings.HasPrefix(out, place.Home+"\n"), out)
	require.Contains(t, out, "MINE=1\n")
	require.Contains(t, out, "CUDA_VISIBLE_DEVICES=GPU-1\n")
	require.Contains(t, out, "HOME="+place.Home+"\n")
	require.NotContains(t, out, "of the daemon")
	require.Regexp(t, `\n0\n1\n(10\n)?2\n$`, out, "10: where the shell itself reads")
}

func TestACommandWithATerminal(t *testing.T) {
	c := shell("stty size; read line; stty size; echo got $line; test -t 2 && echo tty $TERM")
	c.Terminal = &work.Terminal{Name: "xterm-256color", Size: session.Size{Columns: 100, Rows: 30}}
	got := run(t, newPlace(t), c, message{session.Resize, `{"columns":90,"rows":20}`}, message{session.Resize, `{}`},
		message{session.Stdin, "hello\r"})
	require.Zero(t, got.end.ExitCode)
	require.Contains(t, got.out[session.Stdout], "20 90\r\n", "it was resized before it read the line")
	require.Contains(t, got.out[session.Stdout], "got hello\r\ntty xterm-256color\r\n")
	require.Empty(t, got.out[session.Stderr])
}

func TestSignalsReachTheProcessGroup(t *testing.T) {
	p := newPair()
	done := make(chan session.End, 1)
	go func() {
		done <- carry(t.Context(), patient, newPlace(t),
			shell("trap 'exit 3' INT; sh -c 'echo ready; exec sleep 1000'"), p)
	}()
	require.Equal(t, message{session.Stdout, "ready\n"}, <-p.fromNode)
	p.toNode <- message{session.Signal, "NONE"}
	p.toNode <- message{session.Signal, "INT"} // its sleep gets it, too
	go func() {
		for range p.fromNode {
		}
	}()
	require.Equal(t, session.End{ExitCode: 3}, <-done)
	p.end()
	close(p.fromNode)
}

// A stream that breaks ends the command and what it started, also where they ignore the mild signals.
func TestACutStreamHangsUp(t *testing.T) {
	for name, c := range map[string]struct {
		runner work.Runner
		script string
	}{
		"mild": {patient, "sleep 1000 & echo $!; wait"},
		"stubborn": {hasty, `trap '' HUP TERM; sh -c 'trap "" HUP TERM; sleep 1000; sleep 1000' & echo $!
while :; do sleep 1000; done`},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair()
			done := make(chan session.End, 1)
			go func() { done <- carry(t.Context(), c.runner, newPlace(t), shell(c.script), p) }()
			child, err := strconv.Atoi(strings.TrimSpace((<-p.fromNode).data))
			require.NoError(t, err)
			p.end()
			end := <-done
			require.Contains(t, end.Reason, "hung up")
			require.NotEmpty(t, end.Signal)
			require.Eventually(t, func() bool { return isGone(child) }, time.Minute, 5*time.Millisecond)
		})
	}
}

// What was put behind nohup survives the end of its session.
func TestWhatIsBehindNohupSurvivesACut(t *testing.T) {
	p := newPair()
	done := make(chan session.End, 1)
	go func() {
		done <- carry(t.Context(), patient, newPlace(t), shell(`nohup sh -c 'echo $$; exec sleep 1000 >/dev/null 2>&1' &
wait`), p)
	}()
	child, err := strconv.Atoi(strings.TrimSpace((<-p.fromNode).data))
	require.NoError(t, err)
	p.end()
	<-done
	require.False(t, isGone(child))
	require.NoError(t, syscall.Kill(child, syscall.SIGKILL))
}

// isGone reports whether a process has ended: nobody may have reaped it here.
func isGone(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return errors.Is(err, os.ErrNotExist)
	}
	after := stat[bytes.LastIndexByte(stat, ')')+1:]
	return bytes.HasPrefix(after, []byte(" Z"))
}

// A child in the background that keeps the output open holds up nobody, and goes on.
func TestABackgroundChildDoesNotHoldTheEnd(t *testing.T) {
	p := newPair()
	done := make(chan session.End, 1)
	go func() { done <- carry(t.Context(), hasty, newPlace(t), shell("sleep 1000 & echo $!; read line"), p) }()
	child, err := strconv.Atoi(strings.TrimSpace((<-p.fromNode).data))
	require.NoError(t, err)
	p.toNode <- message{session.Stdin, "end\n"} // not before all it wrote has come
	end := <-done
	p.end()
	require.Contains(t, end.Reason, "still hold its output open")
	require.False(t, isGone(child))
	require.NoError(t, syscall.Kill(child, syscall.SIGKILL))
}

// What a command wrote reaches a holder who reads much more slowly than the command ended.
func TestASlowHolderLosesNothing(t *testing.T) {
	p := newPair()
	done := make(chan session.End, 1)
	go func() { done <- carry(t.Context(), hasty, newPlace(t), shell("seq 1 100000"), p) }()
	size, pause := 0, time.NewTicker(hasty.Drain/2)
	defer pause.Stop()
	for {
		select {
		case m := <-p.fromNode:
			if m.channel == session.Stdout {
				size += len(m.data)
			}
			<-pause.C
		case end := <-done:
			require.Equal(t, session.End{}, end)
			require.Equal(t, 588895, size)
			p.end()
			return
		}
	}
}

// A folder without a slash before it is one of the place's, wherever the daemon was started.
func TestAFolderIsOfThePlace(t *testing.T) {
	place := newPlace(t)
	require.NoError(t, os.Mkdir(filepath.Join(place.Home, "sub"), 0o700))
	for dir, want := range map[string]string{"": place.Home, ".": place.Home, "sub": filepath.Join(place.Home, "sub"),
		"/": "/"} {
		c := shell("pwd -P")
		c.Directory = dir
		require.Equal(t, want+"\n", run(t, place, c).out[session.Stdout], dir)
	}
}

// A command with a user of its own is that user, with no group of the daemon's.
func TestACommandWithItsOwnUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root may become another user")
	}
	place := newPlace(t)
	place.UID, place.GID, place.OwnUser = 1_900_000_001, 1_900_000_001, true
	place.Home = "/"
	c := shell("id -u; id -g; id -G; echo $USER; test -w /etc/passwd || echo safe")
	require.Equal(t, "1900000001\n1900000001\n1900000001\nforewarm-1900000001\nsafe\n",
		run(t, place, c).out[session.Stdout])
	c.Terminal = &work.Terminal{Size: session.Size{Columns: 80, Rows: 24}}
	c.Arguments[2] = "echo x >/dev/tty && stat -c %u $(tty)"
	require.Equal(t, "x\r\n1900000001\r\n", run(t, place, c).out[session.Stdout])
}

func TestAPortCarriesBothWays(t *testing.T) {
	l, err := net.Listen("tcp", "localhost:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		got, _ := io.ReadAll(conn) // to the half that the holder closes
		_, _ = fmt.Fprintf(conn, "%d bytes", len(got))
		_ = conn.Close()
	}()
	p := newPair()
	done := make(chan session.End, 1)
	port := l.Addr().(*net.TCPAddr).Port
	go func() { done <- patient.Connect(t.Context(), newPlace(t), port, p) }()
	p.toNode <- message{session.Stdin, "12345"}
	p.toNode <- message{session.Close, "\x00"}
	require.Equal(t, message{session.Stdout, "5 bytes"}, <-p.fromNode)
	require.Equal(t, message{session.Close, "\x01"}, <-p.fromNode)
	require.Equal(t, session.End{}, <-done)
	p.end()
}

func TestAPortWithoutAListenerSaysSo(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := l.Addr().(*net.TCPAddr).Port
	require.NoError(t, l.Close())
	end := patient.Connect(context.Background(), newPlace(t), port, newPair())
	require.Equal(t, session.NotStarted, end.Code)
	require.Contains(t, end.Reason, "nothing listens on port")
}

// Work with a user of its own reaches the ports of its own programs, and neither the node's nor those of
// other holders.
func TestAPortOfAnothersProgramIsNotReached(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "0.0.0.0:0", "[::1]:0", "[::]:0", "127.0.0.7:0"} {
		l, err := net.Listen("tcp", address)
		require.NoError(t, err)
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = io.WriteString(conn, "mine")
				_ = conn.Close()
			}
		}()
		port := l.Addr().(*net.TCPAddr).Port
		place := newPlace(t)
		place.OwnUser, place.UID = true, place.UID+1
		end := patient.Connect(t.Context(), place, port, newPair())
		require.Equal(t, session.NotStarted, end.Code, address)
		require.Contains(t, end.Reason, "nothing of this allocation listens on port "+strconv.Itoa(port))
		place.UID--
		p := newPair()
		done := make(chan session.End, 1)
		go func() { done <- patient.Connect(t.Context(), place, port, p) }()
		require.Equal(t, message{session.Stdout, "mine"}, <-p.fromNode, address)
		require.Equal(t, message{session.Close, "\x01"}, <-p.fromNode)
		p.toNode <- message{session.Close, "\x00"}
		require.Equal(t, session.End{}, <-done)
		p.end()
		require.NoError(t, l.Close())
	}
}
