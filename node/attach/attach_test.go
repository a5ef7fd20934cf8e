package attach_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	forewarmv1 "github.com/forewarm/forewarm/contract/proto/forewarm/v1"
	"github.com/forewarm/forewarm/contract/proto/forewarm/v1/forewarmv1connect"
	"github.com/forewarm/forewarm/contract/session"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/httpx"
	"github.com/forewarm/forewarm/internal/leaktest"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/node/attach"
	"github.com/forewarm/forewarm/node/hold"
	"github.com/forewarm/forewarm/node/launch/launchtest"
	"github.com/forewarm/forewarm/node/supervise"
	"github.com/forewarm/forewarm/node/supervise/supervisetest"
	"github.com/forewarm/forewarm/node/work"
)

func TestMain(m *testing.M) { leaktest.VerifyTestMain(m) }

type (
	attachStream = connect.BidiStream[forewarmv1.AttachRequest, forewarmv1.AttachResponse]
	serveStream  = connect.BidiStream[forewarmv1.ServeRequest, forewarmv1.ServeResponse]
)

// plane is a control plane whose streams the test holds.
type plane struct {
	t        *testing.T
	attached chan *attachStream
	release  chan struct{}      // ends the stream that is attached
	ends     chan session.End   // of sessions
	said     chan string        // by commands
	keys     chan string        // with which streams came
	leave    context.CancelFunc // ends the daemon
	// sessionKeys are those with which the sessions "renewed" came.
	sessionKeys chan string
}

func (p *plane) Attach(ctx context.Context, s *attachStream) error {
	p.keys <- s.RequestHeader().Get("Authorization")
	if _, err := s.Receive(); err != nil {
		return err
	}
	select {
	case p.attached <- s:
	case <-ctx.Done():
	}
	select {
	case <-ctx.Done():
	case <-p.release:
		return errors.New("the server goes away")
	}
	return nil
}

func (p *plane) Serve(_ context.Context, s *serveStream) error {
	first, err := s.Receive()
	if err != nil {
		return err
	}
	if first.GetSessionId() == "renewed" {
		p.sessionKeys <- s.RequestHeader().Get("Authorization")
	}
	if first.GetSessionId() == "flooded" {
		return p.flood(s)
	}
	for {
		got, err := s.Receive()
		if err != nil {
			return err
		}
		f := got.GetFrame()
		if session.Channel(f.GetChannel()) == session.Stdout && len(f.GetData()) > 0 {
			p.said <- string(f.GetData())
		}
		if session.Channel(f.GetChannel()) == session.Result {
			end, err := session.ParseEnd(f.GetData())
			p.ends <- end
			return err
		}
	}
}

// flood sends more than a command that does not read takes, and leaves.
func (p *plane) flood(s *serveStream) error {
	for range 22 { // 16 wait in the daemon, 3 in its hands and the pipe, the rest in the stream
		err := s.Send(&forewarmv1.ServeResponse{Frame: &forewarmv1.Frame{Data: make([]byte, session.MostData)}})
		if err != nil {
			return err
		}
	}
	return errors.New("the user has left")
}

func newPlane(t *testing.T, change func(*attach.Config)) *plane {
	t.Helper()
	p := &plane{t: t, attached: make(chan *attachStream), release: make(chan struct{}), ends: make(chan session.End, 200),
		said: make(chan string, 100),
		keys: make(chan string, 100), sessionKeys: make(chan string, 1)}
	mux := http.NewServeMux()
	mux.Handle(forewarmv1connect.NewNodeServiceHandler(p))
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	web := httpx.NewServer("", mux)
	go func() { _ = web.Serve(l) }()
	dir, err := os.MkdirTemp("/var/tmp", "forewarm-attach-test-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o711)) //nolint:gosec // users of holds pass through it
	holds, err := hold.NewKeeper(hold.Config{Dir: filepath.Join(dir, "holds"), Book: filepath.Join(dir, "book.json"),
		Clock: clock.System{}, Log: slog.New(slog.DiscardHandler), Grace: 100 * time.Millisecond,
		Launcher: launchtest.Launcher()})
	require.NoError(t, err)
	supervisors, err := supervise.Open(filepath.Join(dir, "sessions"), supervisetest.Command())
	require.NoError(t, err)
	transport := attach.NewTransport()
	cfg := attach.Config{URL: "http://" + l.Addr().String(), BootID: "boot", Epoch: 7, Holds: holds,
		Supervisors: supervisors, Hurry: func() {},
		Key: func() obs.Secret { return obs.NewSecret("key") }, Log: slog.New(slog.DiscardHandler),
		HTTP: &http.Client{Transport: transport}, Random: rand.New(rand.NewPCG(1, 2)),
		Runner: work.Runner{HangUp: time.Minute, Terminate: time.Minute, Kill: time.Minute, Drain: time.Minute}}
	if change != nil {
		change(&cfg)
	}
	at, err := attach.New(cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	p.leave = cancel
	var all sync.WaitGroup
	all.Go(func() { at.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		all.Wait()
		transport.CloseIdleConnections()
		require.NoError(t, web.Close())
		supervisors.Close()
		holds.EndAll()
		require.NoError(t, os.RemoveAll(dir))
	})
	return p
}

// alc is an allocation of this process alone: without rights of its own a keeper ends all processes on the machine that
// bear the allocation's name, those of another package's tests, too.
func alc(n int) string { return fmt.Sprintf("alc_%d_%d", os.Getpid(), n) }

func open(id string, arguments ...string) *forewarmv1.AttachResponse {
	return &forewarmv1.AttachResponse{Open: &forewarmv1.OpenSession{SessionId: id,
		Hold: &forewarmv1.Hold{AllocationId: alc(1)},
		Work: &forewarmv1.OpenSession_Command{Command: &forewarmv1.Command{Arguments: arguments}}}}
}

// A server that goes away ends nothing but its own sessions: the daemon comes back, with its key as it is then.
func TestADaemonComesBack(t *testing.T) {
	var mu sync.Mutex
	key := "first"
	p := newPlane(t, func(c *attach.Config) {
		c.Key = func() obs.Secret {
			mu.Lock()
			defer mu.Unlock()
			return obs.NewSecret(key)
		}
	})
	s := <-p.attached
	require.Equal(t, "Bearer first", <-p.keys)
	require.NoError(t, s.Send(open("one", "true")))
	require.Equal(t, session.End{}, <-p.ends)
	mu.Lock()
	key = "second"
	mu.Unlock()
	require.NoError(t, s.Send(open("renewed", "true"))) // a stream outlives the key that it began with
	require.Equal(t, session.End{}, <-p.ends)
	require.Equal(t, "Bearer second", <-p.sessionKeys)
	p.release <- struct{}{}
	s = <-p.attached
	require.Equal(t, "Bearer second", <-p.keys)
	require.NoError(t, s.Send(open("two", "sh", "-c", "exit 9")))
	require.Equal(t, session.End{ExitCode: 9}, <-p.ends)
}

// A server that says nothing is given up, also while the connection stands.
func TestASilentServerIsGivenUp(t *testing.T) {
	p := newPlane(t, func(c *attach.Config) { c.SignEvery = 20 * time.Millisecond })
	<-p.attached
	<-p.attached
}

// What a daemon cannot open it refuses, and goes on.
func TestWhatCannotBeOpened(t *testing.T) {
	hurried := make(chan struct{}, 1)
	p := newPlane(t, func(c *attach.Config) { c.Hurry = func() { hurried <- struct{}{} } })
	s := <-p.attached
	for _, wrong := range []*forewarmv1.OpenSession{
		{SessionId: "1", Hold: &forewarmv1.Hold{AllocationId: "../x"}},
		{SessionId: "2", Hold: &forewarmv1.Hold{AllocationId: alc(1)}}, {SessionId: "3"},
	} {
		require.NoError(t, s.Send(&forewarmv1.AttachResponse{Open: wrong}))
		require.Equal(t, session.Refused, (<-p.ends).Code)
	}
	<-hurried // that of attaching
	require.NoError(t, s.Send(&forewarmv1.AttachResponse{Report: true}))
	<-hurried
}

// What the server had to tell while nobody was attached, such as a job to start, is not left to the next report.
func TestAttachingAsksForAReport(t *testing.T) {
	hurried := make(chan struct{}, 1)
	p := newPlane(t, func(c *attach.Config) { c.Hurry = func() { hurried <- struct{}{} } })
	s := <-p.attached
	require.NoError(t, s.Send(&forewarmv1.AttachResponse{}))
	<-hurried
}

// A session ends with its user, also where the work has yet to read what the user sent.
func TestAFloodedSessionEndsWithItsUser(t *testing.T) {
	ended := make(chan struct{}, 1)
	p := newPlane(t, func(c *attach.Config) {
		c.Log, c.SignEvery = slog.New(told{slog.DiscardHandler, "session ended", ended}), time.Second
	})
	s := <-p.attached
	require.NoError(t, s.Send(open("flooded", "sleep", "1000")))
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("it goes on")
	}
}

// Who has a session is told that the daemon ended, and not only that the command was hung up.
func TestTheEndOfADaemonIsTold(t *testing.T) {
	p := newPlane(t, nil)
	s := <-p.attached
	require.NoError(t, s.Send(open("one", "sleep", "1000")))
	require.NoError(t, s.Send(open("two", "true")))
	require.Equal(t, session.End{}, <-p.ends)
	p.leave()
	require.Contains(t, (<-p.ends).Reason, "the node's daemon ended")
}

// So is that what ran it was killed, as by whoever looks for memory.
func TestTheEndOfASupervisorIsTold(t *testing.T) {
	p := newPlane(t, nil)
	s := <-p.attached
	require.NoError(t, s.Send(open("one", "sh", "-c", "echo $PPID; exec sleep 1000")))
	supervisor, err := strconv.Atoi(strings.TrimSpace(<-p.said))
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(supervisor, syscall.SIGKILL))
	end := <-p.ends
	require.Equal(t, session.NotThere, end.Code)
	require.Contains(t, end.Reason, "was killed")
}

// Whoever comes for a command with what cannot be leaves it as it is, and whose place another connection takes is told
// that, and not that the command was killed.
func TestALineThatIsTakenIsNoEnd(t *testing.T) {
	p := newPlane(t, func(c *attach.Config) { c.Patience = time.Second })
	s := <-p.attached
	first, id := open("one", "sh", "-c", "echo here; exec sleep 1000"), session.NewResumeID()
	first.Open.GetCommand().ResumeId = id
	require.NoError(t, s.Send(first))
	require.Equal(t, "here\n", <-p.said)
	again := func(taken uint64) *forewarmv1.AttachResponse {
		return &forewarmv1.AttachResponse{Open: &forewarmv1.OpenSession{SessionId: "two",
			Hold: &forewarmv1.Hold{AllocationId: alc(1)},
			Work: &forewarmv1.OpenSession_Resumption{Resumption: &forewarmv1.Resumption{ResumeId: id, Taken: taken}}}}
	}
	require.NoError(t, s.Send(again(1<<40)))
	end := <-p.ends
	require.Equal(t, session.Refused, end.Code)
	require.Contains(t, end.Reason, "what cannot be")
	require.NoError(t, s.Send(again(0)))
	require.Equal(t, "here\n", <-p.said, "it is sent again")
	require.Equal(t, end, <-p.ends, "of the first connection")
}

// told is a log's handler that tells of a message.
type told struct {
	slog.Handler
	message string
	to      chan<- struct{}
}

func (told) Enabled(context.Context, slog.Level) bool { return true }

func (h told) Handle(_ context.Context, r slog.Record) error {
	if r.Message == h.message {
		h.to <- struct{}{}
	}
	return nil
}

func (h told) WithAttrs([]slog.Attr) slog.Handler { return h }

func TestSessionsAreBounded(t *testing.T) {
	p := newPlane(t, nil)
	s := <-p.attached
	refused := func(last string, full ...string) string {
		begin := func(allocation string) {
			one := open("x", "sleep", "1000")
			one.Open.Hold.AllocationId = allocation
			require.NoError(t, s.Send(one))
		}
		for _, id := range full {
			for range attach.MostOfOne {
				begin(id)
			}
		}
		begin(last)
		end := <-p.ends
		require.Equal(t, session.Refused, end.Code)
		return end.Reason
	}
	require.Contains(t, refused(alc(1), alc(1)), "the allocation has as many sessions on the node as it may")
	require.Contains(t, refused(alc(5), alc(2), alc(3), alc(4)), "the node has as many sessions as it takes")
}

// Connections to ports leave places for commands.
func TestPortsLeavePlacesForCommands(t *testing.T) {
	t.Parallel()
	var p attach.Places
	port := func(id string) error {
		_, err := p.Enter(id, true)
		return err
	}
	for range 12 {
		require.NoError(t, port(alc(1)))
	}
	require.ErrorContains(t, port(alc(1)), "the rest is kept for commands")
	var leave []func()
	for range 4 {
		left, err := p.Enter(alc(1), false)
		require.NoError(t, err)
		leave = append(leave, left)
	}
	_, err := p.Enter(alc(1), false)
	require.EqualError(t, err, "the allocation has as many sessions on the node as it may, 16: 4 of exec or cp, and 12 "+
		"of port; wait until one ends, or end another (Ctrl-C where it was begun), and try again")
	leave[0]()
	_, err = p.Enter(alc(1), false)
	require.NoError(t, err, "one has ended")
	for _, id := range []string{alc(2), alc(3), alc(4)} {
		for range 12 {
			require.NoError(t, port(id))
		}
	}
	require.ErrorContains(t, port(alc(5)), "the node has as many connections to ports as it takes")
	for range 12 {
		_, err := p.Enter(alc(5), false)
		require.NoError(t, err)
	}
	_, err = p.Enter(alc(5), false)
	require.ErrorContains(t, err, "the node has as many sessions as it takes, 64, of which this allocation has 12 of "+
		"exec or cp, and 0 of port: wait until one ends")
}
