package server_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/client/session"
	"github.com/forewarm/forewarm/contract"
	wire "github.com/forewarm/forewarm/contract/session"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/httpx"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/node/attach"
	"github.com/forewarm/forewarm/node/hold"
	"github.com/forewarm/forewarm/node/launch/launchtest"
	"github.com/forewarm/forewarm/node/supervise"
	"github.com/forewarm/forewarm/node/supervise/supervisetest"
	"github.com/forewarm/forewarm/node/work"
	"github.com/forewarm/forewarm/node/work/worktest"
	"github.com/forewarm/forewarm/server"
)

// site is a fleet behind a real listener, with an allocation on a node whose daemon is
// attached.
type site struct {
	*fleet
	url  string
	held contract.Allocation
	on   int // the node

	nodeURL string // for its daemon alone
	cutNode func() // cuts all connections to it

	holds       *hold.Keeper
	supervisors *supervise.Supervisors
	patience    time.Duration // of commands; 0: little
	hurry       func()        // has the daemon report; nil: it does not
	stop        func()        // the daemon, with what it runs
	seq         int64
}

func newSite(t *testing.T, change ...func(*server.Config)) *site {
	t.Helper()
	f := newFleet(t, change...)
	return siteOf(t, f, f.server)
}

// siteOf is a site whose daemon is attached to a server.
func siteOf(t *testing.T, f *fleet, to http.Handler) *site {
	t.Helper()
	s := siteBefore(t, f, to)
	s.attach(1)
	return s
}

// siteBefore is a site whose daemon has joined, and is not attached.
func siteBefore(t *testing.T, f *fleet, to http.Handler) *site {
	t.Helper()
	s := &site{fleet: f}
	s.url, _ = s.listen(s.handler)
	s.nodeURL, s.cutNode = s.listen(to)
	s.held = ask[contract.Allocation](s.world, "root", http.MethodPost, "/v1/allocations", `{"pool":"lab","gpus":2}`,
		"Idempotency-Key", "held")
	s.held = ask[contract.Allocation](s.world, "root", http.MethodGet, "/v1/allocations/"+s.held.ID, "")
	for i, n := range s.nodes {
		if n.ID == s.held.Access.Nodes[0].NodeID {
			s.on = i
		}
	}
	s.join(s.on, "boot", "daemon")
	s.holds = newHolds(t)
	var err error
	s.supervisors, err = supervise.Open(t.TempDir(), supervisetest.Command())
	require.NoError(t, err)
	t.Cleanup(s.supervisors.Close)
	return s
}

// listen serves a server at an address of its own, until cut is called.
func (s *site) listen(h http.Handler) (url string, cut func()) {
	s.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(s.t, err)
	web := httpx.NewServer("", h)
	go func() { _ = web.Serve(l) }()
	cut = func() { _ = web.Close() }
	s.t.Cleanup(cut)
	return "http://" + l.Addr().String(), cut
}

func newHolds(t *testing.T) *hold.Keeper {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "forewarm-sessions-test-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o711))
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	k, err := hold.NewKeeper(hold.Config{Dir: filepath.Join(dir, "holds"), Book: filepath.Join(dir, "book.json"),
		Clock: clock.System{}, Log: slog.New(slog.DiscardHandler), Grace: 100 * time.Millisecond,
		Launcher: launchtest.Launcher()})
	require.NoError(t, err)
	t.Cleanup(k.EndAll)
	return k
}

// attach begins a daemon, and waits until sessions can be opened.
func (s *site) attach(epoch int64) {
	s.t.Helper()
	earlier, err := s.supervisors.Earlier()
	require.NoError(s.t, err)
	transport := attach.NewTransport()
	hurry := s.hurry
	if hurry == nil {
		hurry = func() {}
	}
	at, err := attach.New(attach.Config{URL: s.nodeURL, BootID: "boot", Epoch: epoch, Holds: s.holds,
		Supervisors: s.supervisors, Earlier: earlier, Patience: cmp.Or(s.patience, 2*time.Second), Hurry: hurry,
		Key: func() obs.Secret { return obs.NewSecret(s.keys["daemon"]) }, Log: slog.New(slog.DiscardHandler),
		HTTP: &http.Client{Transport: transport}, Random: rand.New(rand.NewPCG(1, 2)),
		Runner: work.Runner{HangUp: 100 * time.Millisecond, Terminate: 100 * time.Millisecond, Kill: time.Minute,
			Drain: time.Minute}})
	require.NoError(s.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); at.Run(ctx) }()
	s.stop = func() {
		cancel()
		<-done
		transport.CloseIdleConnections()
	}
	s.t.Cleanup(s.stop)
	require.Eventually(s.t, func() bool {
		_, _, err := s.exec("root", "true")
		return err == nil
	}, time.Minute, 10*time.Millisecond)
}

// as is where a key opens sessions. Who is cut off tries to come back once.
func (s *site) as(key string) session.Server {
	api, err := client.New(s.url, s.keys[key], http.DefaultClient)
	require.NoError(s.t, err)
	return session.Server{API: api, HTTP: &http.Client{}, Patience: time.Nanosecond}
}

// exec runs a shell script, and returns its exit code and what it printed.
func (s *site) exec(key, script string) (int, string, error) {
	var out bytes.Buffer
	end, err := s.as(key).Run(s.t.Context(), s.held.ID, session.Command{Stdout: &out, Stderr: &out,
		Command: wire.Command{Arguments: []string{"sh", "-c", script}}})
	return end.ExitCode, out.String(), err
}

// report sends what the daemon has to say of holds, and has it follow the answer.
func (s *site) report() contract.HeartbeatAnswer {
	s.t.Helper()
	s.seq++
	answer := s.sendBeat("daemon", s.on, s.beat(s.on, 1, s.seq, "healthy", func(b *contract.Heartbeat) {
		b.Holds, b.Cleaned = s.holds.List(), s.holds.Cleaned()
	}))
	s.holds.End(answer.Ended)
	return answer
}

func TestExecRunsOnTheNode(t *testing.T) {
	s := newSite(t)
	code, out, err := s.exec("root", "echo $CUDA_VISIBLE_DEVICES $NPROC_PER_NODE; exit 3")
	require.NoError(t, err)
	require.Equal(t, 3, code)
	require.Equal(t, strings.Join(s.held.Access.Nodes[0].GPUUUIDs, ",")+" 2\n", out)

	input := strings.Repeat("all of it\n", 300_000)
	var copied bytes.Buffer
	end, err := s.as("root").Run(t.Context(), s.held.ID, session.Command{Stdin: strings.NewReader(input), Stdout: &copied,
		Command: wire.Command{Arguments: []string{"cat"}}})
	require.NoError(t, err)
	require.Equal(t, wire.End{}, end)
	require.True(t, input == copied.String())

	_, _, err = s.exec("root", "kill -9 $$")
	require.NoError(t, err)
	_, err = s.as("root").Run(t.Context(), s.held.ID, session.Command{Command: wire.Command{Arguments: []string{"nope"}}})
	var ended *session.EndError
	require.ErrorAs(t, err, &ended)
	require.Equal(t, wire.NotStarted, ended.Code)
}

// Whoever must not enter is told so before anything is opened.
func TestWhoMayNotEnter(t *testing.T) {
	s := newSite(t)
	s.createKey("viewer", "viewer")
	s.createKey("member", "member")
	_, _, err := s.exec("member", "true")
	require.NoError(t, err)
	problemOf := func(key, id string, node int) (int, string) {
		_, err := s.as(key).Run(t.Context(), id, session.Command{Node: node})
		told, ok := errors.AsType[*client.Error](err)
		if !ok { // the daemon left while it was asked
			require.ErrorContains(t, err, "not in reach")
			return 0, ""
		}
		return told.Problem.Status, told.Problem.Code
	}
	for _, c := range []struct {
		key, id string
		node    int
		status  int
		code    string
	}{
		{"viewer", s.held.ID, 0, 403, contract.CodePermissionDenied},
		{"daemon", s.held.ID, 0, 403, contract.CodePermissionDenied},
		{"root", "alc_01hzzzzzzzzzzzzzzzzzzzzzzz", 0, 404, contract.CodeNotFound},
		{"root", s.held.ID, 1, 400, contract.CodeInvalidParameter},
	} {
		status, code := problemOf(c.key, c.id, c.node)
		require.Equal(t, c.status, status, c)
		require.Equal(t, c.code, code, c)
	}
	s.refuse("root", http.MethodGet, "/v1/allocations/"+s.held.ID+"/exec", "")
	s.stop()
	require.Eventually(t, func() bool {
		status, code := problemOf("root", s.held.ID, 0)
		return status == 409 && code == contract.CodeNodeNotAttached
	}, time.Minute, 10*time.Millisecond)
}

// A lease that ends, or a release, ends what runs, and the GPUs are nobody's before the node is proved clean.
func TestTheEndOfAnAllocationEndsItsSessionsAndCleansTheNode(t *testing.T) {
	s := newSite(t)
	began := make(chan string, 1)
	ended := make(chan error, 1)
	go func() {
		var out lineWriter = began
		_, err := s.as("root").Run(t.Context(), s.held.ID, session.Command{Stdout: out,
			Command: wire.Command{Arguments: []string{"sh", "-c", "echo secret >left; pwd; sleep 1000"}}})
		ended <- err
	}()
	home := strings.TrimSpace(<-began)
	require.Empty(t, s.report().Ended)
	ask[contract.Allocation](s.world, "root", http.MethodPost, "/v1/allocations/"+s.held.ID+"/release", "",
		"Idempotency-Key", "release")
	var told *session.EndError
	require.ErrorAs(t, <-ended, &told)
	require.Equal(t, wire.LeaseOver, told.Code)
	require.Equal(t, s.held.ID+" was released by root", told.Reason)

	require.Equal(t, []string{s.held.ID}, s.report().Ended)
	gpu := s.held.Access.Nodes[0].GPUUUIDs[0]
	state := func() string { return ask[contract.GPU](s.world, "root", http.MethodGet, "/v1/gpus/"+gpu, "").State }
	require.Equal(t, "unavailable", state(), "it is not proved clean")
	<-s.holds.Changed()
	s.holds.Look(contract.NodeLook{Source: "simulated"}, time.Now())
	require.Empty(t, s.report().Ended)
	_, err := os.Stat(home)
	require.ErrorIs(t, err, os.ErrNotExist)
	s.runDueTasks(contract.Pool{})
	require.Equal(t, "free", state())
	events := ask[contract.EventList](s.world, "root", http.MethodGet, "/v1/events?subject="+s.held.ID, "").Items
	var kinds []string
	for _, e := range events {
		kinds = append(kinds, e.Type)
	}
	require.Subset(t, kinds, []string{"allocation.opened", "allocation.released", "allocation.cleaned"})
}

// lineWriter hands on the first thing that is written.
type lineWriter chan string

func (w lineWriter) Write(p []byte) (int, error) {
	select {
	case w <- string(p):
	default:
	}
	return len(p), nil
}

// A node whose daemon does not prove in time that it is clean is taken out of use; so is one that says that it is
// not.
func TestANodeThatIsNotCleanIsQuarantined(t *testing.T) {
	for name, say := range map[string]func(*site){
		"silence": func(s *site) { s.clock.Advance(3 * time.Minute) },
		"a problem": func(s *site) {
			s.seq++
			s.sendBeat("daemon", s.on, s.beat(s.on, 1, s.seq, "healthy", func(b *contract.Heartbeat) {
				b.Cleaned = []contract.Cleaned{{AllocationID: s.held.ID, Problem: "processes [7] do not end"}}
			}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			_, _, err := s.exec("root", "true")
			require.NoError(t, err)
			ask[contract.Allocation](s.world, "root", http.MethodPost, "/v1/allocations/"+s.held.ID+"/release", "",
				"Idempotency-Key", "release")
			say(s)
			s.runDueTasks(contract.Pool{})
			got := s.node(s.on)
			require.NotEqual(t, "ready", got.State)
			require.Len(t, s.events(s.on, "node.quarantined"), 1)
			require.Equal(t, ledger.ReasonNotClean, s.events(s.on, "node.quarantined")[0].Reason)
		})
	}
}

// An allocation that nobody entered gives its GPUs back at once, as before.
func TestGPUsThatNobodyEnteredAreFreeAtOnce(t *testing.T) {
	s := newFleet(t)
	held := ask[contract.Allocation](s.world, "root", http.MethodPost, "/v1/allocations", `{"pool":"lab","gpus":8}`,
		"Idempotency-Key", "held")
	s.join(0, "boot", "daemon")
	ask[contract.Allocation](s.world, "root", http.MethodPost, "/v1/allocations/"+held.ID+"/release", "",
		"Idempotency-Key", "release")
	require.Equal(t, "free", s.gpu(0, 0).State)
}

// A daemon that goes away while something runs ends the session with an error, and never with an exit code.
func TestALostNodeIsNoExit(t *testing.T) {
	s := newSite(t)
	began, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		var out lineWriter = began
		_, err := s.as("root").Run(t.Context(), s.held.ID, session.Command{Stdout: out,
			Command: wire.Command{Arguments: []string{"sh", "-c", "trap '' HUP TERM; echo up; while :; do sleep 100; done"}}})
		ended <- err
	}()
	require.Equal(t, "up\n", <-began)
	s.cutNode()
	err := <-ended
	var told *session.EndError
	require.ErrorAs(t, err, &told)
	require.Equal(t, wire.NodeLost, told.Code)
}

func TestAPortOfTheNode(t *testing.T) {
	s := newSite(t)
	_, user, err := s.exec("root", "id -u")
	require.NoError(t, err)
	l := worktest.ListenAs(t, strings.TrimSpace(user))
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				all, _ := io.ReadAll(conn)
				_, _ = conn.Write(bytes.ToUpper(all))
				_ = conn.Close()
			}()
		}
	}()
	port := l.Addr().(*net.TCPAddr).Port
	conn, err := s.as("root").Connect(t.Context(), s.held.ID, 0, port)
	require.NoError(t, err)
	big := strings.Repeat("x", 3_000_000)
	_, err = conn.Write([]byte(big))
	require.NoError(t, err)
	require.NoError(t, conn.CloseWrite())
	got, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.True(t, strings.ToUpper(big) == string(got))
	require.NoError(t, conn.Close())

	require.NoError(t, l.Close())
	conn, err = s.as("root").Connect(t.Context(), s.held.ID, 0, port)
	require.NoError(t, err)
	_, err = conn.Read(make([]byte, 1))
	var ended *session.EndError
	require.ErrorAs(t, err, &ended)
	require.Equal(t, wire.NotStarted, ended.Code)
}
