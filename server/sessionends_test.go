package server_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/client/session"
	"github.com/forewarm/forewarm/contract"
	wire "github.com/forewarm/forewarm/contract/session"
	"github.com/forewarm/forewarm/internal/httpx"
	"github.com/forewarm/forewarm/server"
)

// A session on a node that is new waits for its daemon.
func TestASessionWaitsForANewDaemon(t *testing.T) {
	f := newFleet(t, func(c *server.Config) { c.NewDaemon = time.Minute })
	s := siteBefore(t, f, f.server)
	asked, ended := make(chan struct{}, 1), make(chan error, 1)
	s.url, _ = s.listen(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/exec") {
			select {
			case asked <- struct{}{}:
			default:
			}
		}
		s.handler.ServeHTTP(w, r)
	}))
	go func() {
		_, _, err := s.exec("root", "true")
		ended <- err
	}()
	<-asked
	s.attach(1)
	require.NoError(t, <-ended)
	s.stop()
	s.clock.Advance(2 * time.Minute) // it is not new any more
	require.Eventually(t, func() bool {
		_, _, err := s.exec("root", "true")
		told, ok := errors.AsType[*client.Error](err)
		return ok && told.Problem.Code == contract.CodeNodeNotAttached
	}, time.Minute, 10*time.Millisecond)
}

// A server that ends lets go of daemons and sessions, which nothing else would end: whoever is in one is told.
func TestAServerThatEndsLetsGo(t *testing.T) {
	s := newSite(t)
	ctx, end := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- s.server.Run(ctx) }()
	said, write := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		_, err := s.as("root").Run(t.Context(), s.held.ID, session.Command{Stdout: write,
			Command: wire.Command{Arguments: []string{"sh", "-c", "echo here; exec sleep 1000"}}})
		ended <- err
	}()
	_, err := io.ReadFull(said, make([]byte, len("here\n")))
	require.NoError(t, err)
	end()
	require.NoError(t, <-ran)
	told, ok := errors.AsType[*session.EndError](<-ended)
	require.True(t, ok)
	require.Equal(t, wire.NodeLost, told.Code)
	require.Equal(t, "the control plane was stopped", told.Reason)
	require.Eventually(t, func() bool {
		_, _, err := s.exec("root", "true")
		told, ok := errors.AsType[*client.Error](err)
		return ok && told.Problem.Code == contract.CodeNodeNotAttached
	}, time.Minute, 10*time.Millisecond)
}

// A node that ends what ran there before the server has seen that the allocation was released keeps nobody from being
// told so.
func TestASessionThatItsNodeEndsIsReleased(t *testing.T) {
	s := newSite(t)
	began := make(chan string, 1)
	ended := make(chan error, 1)
	go func() {
		var out lineWriter = began
		_, err := s.as("root").Run(t.Context(), s.held.ID, session.Command{Stdout: out,
			Command: wire.Command{Arguments: []string{"sh", "-c", "echo up; exec sleep 1000"}}})
		ended <- err
	}()
	require.Equal(t, "up\n", <-began)
	ask[contract.Allocation](s.world, "root", http.MethodDelete, "/v1/allocations/"+s.held.ID, "", "Idempotency-Key",
		"end")
	require.Equal(t, []string{s.held.ID}, s.report().Ended)
	var told *session.EndError
	require.ErrorAs(t, <-ended, &told)
	require.Equal(t, wire.End{Code: wire.LeaseOver, Reason: s.held.ID + " was released by root"}, told.End)
}

// A key that was revoked before its holder said what to run begins nothing.
func TestAKeyThatIsRevokedBeforeTheCommandIsSent(t *testing.T) {
	s := newSite(t)
	key := s.createKey("member", "member")
	conn, _, err := websocket.Dial(t.Context(), s.url+"/v1/allocations/"+s.held.ID+"/exec",
		&websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + s.keys["member"]}},
			Subprotocols: []string{wire.Protocol}})
	require.NoError(t, err)
	defer func() { _ = conn.CloseNow() }()
	ask[contract.Key](s.world, "root", http.MethodDelete, "/v1/keys/"+key.ID, "")
	ran := filepath.Join(t.TempDir(), "ran")
	command := wire.Command{Arguments: []string{"touch", ran}}
	require.NoError(t, conn.Write(t.Context(), websocket.MessageBinary,
		wire.AppendMessage(nil, wire.Begin, command.Encode())))
	_, message, err := conn.Read(t.Context())
	require.NoError(t, err)
	channel, data, err := wire.ParseMessage(message)
	require.NoError(t, err)
	require.Equal(t, wire.Result, channel)
	end, err := wire.ParseEnd(data)
	require.NoError(t, err)
	require.Equal(t, wire.Refused, end.Code)
	require.Contains(t, end.Reason, "not valid any more")
	require.NoFileExists(t, ran)
}

// A daemon that has just reported, and is between two servers, is waited for.
func TestASessionWaitsForADaemonThatComesBack(t *testing.T) {
	s := newSite(t)
	s.seq++
	s.sendBeat("daemon", s.on, s.beat(s.on, 1, s.seq, "healthy", func(b *contract.Heartbeat) {
		b.Holds, b.Look.Isolation = s.holds.List(), "user"
	}))
	s.stop()
	ended := make(chan error, 1)
	go func() {
		_, _, err := s.exec("root", "true")
		ended <- err
	}()
	s.attach(2)
	require.NoError(t, <-ended)
}

// A command goes on, and so does its session, when its daemon is replaced, and when its holder's connection is cut.
func TestASessionOutlivesItsDaemonAndItsConnection(t *testing.T) {
	f := newFleet(t)
	s := siteBefore(t, f, f.server)
	s.patience = time.Minute
	s.attach(1)
	cuts := &cutter{}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	cuts.Listener = l
	web := httpx.NewServer("", s.handler)
	go func() { _ = web.Serve(cuts) }()
	t.Cleanup(func() { _ = web.Close() })
	s.url = "http://" + l.Addr().String()
	theirs, in := io.Pipe()
	said, out := io.Pipe()
	lines := bufio.NewReader(said)
	hear := func(want string) {
		got, err := lines.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, want+"\n", got)
	}
	type ended struct {
		end wire.End
		err error
	}
	over := make(chan ended, 1)
	var interrupted, resumed atomic.Int32
	as := s.as("root")
	as.Patience = time.Minute
	go func() {
		end, err := as.Run(t.Context(), s.held.ID, session.Command{Stdin: theirs, Stdout: out,
			Interrupted: func(error) { interrupted.Add(1) }, Resumed: func() { resumed.Add(1) },
			Command: wire.Command{Arguments: []string{"sh", "-c", `echo $$; while read x; do echo "$$ $x"; done; exit 5`}}})
		over <- ended{end, err}
	}()
	pid, err := lines.ReadString('\n')
	require.NoError(t, err)
	pid = strings.TrimSpace(pid)
	say := func(text string) {
		_, err := io.WriteString(in, text+"\n")
		require.NoError(t, err)
		hear(pid + " " + text)
	}
	say("before")
	s.stop()
	s.attach(2)
	say("after the daemon")
	cuts.cut()
	say("after the cut")
	s.stop()
	s.attach(3)
	require.NoError(t, in.Close())
	require.Equal(t, ended{end: wire.End{ExitCode: 5}}, <-over)
	require.Positive(t, interrupted.Load())
	require.Equal(t, interrupted.Load(), resumed.Load())
}

// cutter is a listener whose connections can be cut.
type cutter struct {
	net.Listener
	mu  sync.Mutex
	all []net.Conn
}

func (c *cutter) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.all = append(c.all, conn)
	}
	return conn, err
}

func (c *cutter) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.all {
		_ = conn.Close()
	}
	c.all = nil
}

// Nobody but who began a command comes back to it, and nobody to one that is not there.
func TestASessionThatIsNotThere(t *testing.T) {
	s := newSite(t)
	conn, _, err := websocket.Dial(t.Context(), s.url+"/v1/allocations/"+s.held.ID+"/exec",
		&websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + s.keys["root"]}},
			Subprotocols: []string{wire.Protocol}})
	require.NoError(t, err)
	defer func() { _ = conn.CloseNow() }()
	resumption := wire.Resumption{ResumeID: wire.NewResumeID()}
	require.NoError(t, conn.Write(t.Context(), websocket.MessageBinary,
		wire.AppendMessage(nil, wire.Resume, resumption.Encode())))
	for c := wire.Stdout; c != wire.Result; {
		_, message, err := conn.Read(t.Context())
		require.NoError(t, err)
		var data []byte
		c, data, err = wire.ParseMessage(message)
		require.NoError(t, err)
		if c == wire.Result {
			end, err := wire.ParseEnd(data)
			require.NoError(t, err)
			require.Equal(t, wire.NotThere, end.Code)
		}
	}
}
