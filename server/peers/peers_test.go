package peers

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/keys"
	"github.com/forewarm/forewarm/internal/leaktest"
	"github.com/forewarm/forewarm/ledger"
)

func TestMain(m *testing.M) { leaktest.VerifyTestMain(m) }

// roll is a list of servers in memory. What the real one does, the suite of ledgers
// checks.
type roll struct {
	mu  sync.Mutex
	all []ledger.Peer
}

func (l *roll) Attend(_ context.Context, p ledger.Peer, _ time.Duration) ([]ledger.Peer, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range l.all {
		if o.ID == p.ID {
			return append([]ledger.Peer(nil), l.all...), nil
		}
	}
	l.all = append(l.all, p)
	return append([]ledger.Peer(nil), l.all...), nil
}

func (l *roll) Leave(_ context.Context, id string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, o := range l.all {
		if o.ID == id {
			l.all = append(l.all[:i:i], l.all[i+1:]...)
			return nil
		}
	}
	return nil
}

// member is one server of a test.
type member struct {
	*Group
	end   context.CancelFunc
	ended chan error
}

// startMember starts a server. Its answer says what it was asked, and by whom.
func startMember(t *testing.T, servers ledger.Peers, id string, answer Answerer, change ...func(*Config)) *member {
	t.Helper()
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	cfg := Config{Peers: servers, Clock: clock.System{}, Logger: slog.New(slog.DiscardHandler), ID: id, Listener: l,
		Address: l.Addr().String(), Peppers: []keys.Pepper{pepperOf(t, "5a")}, Version: "1"}
	for _, f := range change {
		f(&cfg)
	}
	m := &member{ended: make(chan error, 1)}
	m.Group, err = New(cfg, answer)
	require.NoError(t, err)
	m.Attend(t.Context())
	ctx, cancel := context.WithCancel(t.Context())
	m.end = cancel
	go func() { m.ended <- m.Run(ctx) }()
	t.Cleanup(func() { m.stop(t) })
	return m
}

// stop ends a server, and waits until it has ended.
func (m *member) stop(t *testing.T) {
	t.Helper()
	m.end()
	require.NoError(t, <-m.ended)
	m.ended <- nil
}

func pepperOf(t *testing.T, digits string) keys.Pepper {
	t.Helper()
	p, err := keys.ParsePepper("1:" + strings.Repeat(digits, 32))
	require.NoError(t, err)
	return p
}

func echo(_ context.Context, c *Call) Reply {
	return Reply{Status: 201, Body: append([]byte(c.Operation+" of "+c.Actor.KeyID+": "), c.Body...)}
}

// refuse answers nothing: nobody may ask it.
func refuse(t *testing.T) Answerer {
	t.Helper()
	return func(context.Context, *Call) Reply {
		t.Error("was asked")
		return Reply{}
	}
}

func TestTheFirstDecidesForAll(t *testing.T) {
	t.Parallel()
	servers := &roll{}
	first := startMember(t, servers, "srv_a", echo)
	others := []*member{startMember(t, servers, "srv_b", refuse(t)), startMember(t, servers, "srv_c", refuse(t))}
	_, err := first.Ask(t.Context(), &Call{})
	require.ErrorIs(t, err, ErrNobody)
	var wait sync.WaitGroup
	for _, m := range others {
		for _, body := range []string{"{}", "", strings.Repeat("x", 100_000)} {
			for range 20 {
				wait.Go(func() {
					got, err := m.Ask(t.Context(), &Call{Operation: "book", Actor: ledger.Actor{KeyID: "key_1"},
						Body: []byte(body)})
					if err != nil || got.Status != 201 || string(got.Body) != "book of key_1: "+body {
						t.Errorf("answered %d, %v", got.Status, err)
					}
				})
			}
		}
	}
	wait.Wait()
	var alone *Group
	_, err = alone.Ask(t.Context(), &Call{})
	require.ErrorIs(t, err, ErrNobody)
	require.False(t, alone.IsFollower())
}

// TestTheNextDecidesWhenTheFirstLeaves: what was sent is answered, nothing more is
// sent, and the others agree on the next.
func TestTheNextDecidesWhenTheFirstLeaves(t *testing.T) {
	t.Parallel()
	servers := &roll{}
	entered, release := make(chan struct{}), make(chan struct{})
	first := startMember(t, servers, "srv_a", func(ctx context.Context, c *Call) Reply {
		close(entered)
		<-release
		return echo(ctx, c)
	})
	second := startMember(t, servers, "srv_b", echo)
	third := startMember(t, servers, "srv_c", refuse(t))
	answered := make(chan error, 1)
	go func() {
		_, err := second.Ask(t.Context(), &Call{Operation: "slow"})
		answered <- err
	}()
	<-entered
	first.end()
	require.Eventually(t, func() bool { return !second.IsFollower() }, time.Minute, time.Millisecond)
	close(release)
	require.NoError(t, <-answered, "what was sent is answered")
	require.Eventually(t, func() bool {
		l := third.link.Load()
		return l != nil && l.to.ID == "srv_b"
	}, time.Minute, time.Millisecond)
	got, err := third.Ask(t.Context(), &Call{Operation: "next"})
	require.NoError(t, err)
	require.Equal(t, "next of : ", string(got.Body))
}

// TestWhoGoesSilentIsGivenUp: a server that is paused answers nothing and keeps its
// connections. Whoever waits is told soon.
func TestWhoGoesSilentIsGivenUp(t *testing.T) {
	t.Parallel()
	security, err := secureConnections([]keys.Pepper{pepperOf(t, "5a")}, "1", clock.System{}.Now())
	require.NoError(t, err)
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	go func() {
		conn, err := tls.NewListener(l, security).Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = conn.Write(appendFrame(nil, hello, 0, func(b []byte) []byte { return append(b, "srv_a"...) }))
		r := bufio.NewReader(conn)
		for err == nil { // reads, and says nothing
			_, _, err = readFrame(r, nil)
		}
	}()
	servers := &roll{all: []ledger.Peer{{ID: "srv_a", Address: l.Addr().String()}}}
	m := startMember(t, servers, "srv_b", refuse(t))
	require.True(t, m.IsFollower())
	_, err = m.Ask(t.Context(), &Call{})
	require.ErrorIs(t, err, ErrLost)
	require.Eventually(t, func() bool { return !m.IsFollower() }, time.Minute, time.Millisecond)
}

// TestWhoWaitsNoMoreWithdraws: the end of a request reaches the server that decides.
func TestWhoWaitsNoMoreWithdraws(t *testing.T) {
	t.Parallel()
	servers := &roll{}
	entered, withdrawn := make(chan struct{}), make(chan struct{})
	startMember(t, servers, "srv_a", func(ctx context.Context, _ *Call) Reply {
		close(entered)
		<-ctx.Done()
		close(withdrawn)
		return Reply{Status: 503}
	})
	m := startMember(t, servers, "srv_b", refuse(t))
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-entered; cancel() }()
	_, err := m.Ask(ctx, &Call{})
	require.ErrorIs(t, err, ErrLost)
	<-withdrawn
}

// TestFormerPeppersAreAccepted: while a pepper is replaced, some servers know both.
func TestFormerPeppersAreAccepted(t *testing.T) {
	t.Parallel()
	servers := &roll{}
	both := func(c *Config) { c.Peppers = []keys.Pepper{pepperOf(t, "ab"), pepperOf(t, "5a")} }
	startMember(t, servers, "srv_a", echo, both)
	m := startMember(t, servers, "srv_b", refuse(t), both)
	_, err := m.Ask(t.Context(), &Call{})
	require.NoError(t, err)
}

// TestWhoCannotBeReachedIsTriedLessAndLess: else all servers turn to it every few
// seconds.
func TestWhoCannotBeReachedIsTriedLessAndLess(t *testing.T) {
	t.Parallel()
	now := clock.NewManual(time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC))
	g := &Group{cfg: Config{ID: "srv_b", Clock: now}, shun: map[string]shunned{}}
	all := []ledger.Peer{{ID: "srv_a"}, {ID: "srv_b"}}
	require.Equal(t, "srv_a", g.firstReachable(all).ID)
	for _, pause := range []time.Duration{shunFirst, 2 * shunFirst, 4 * shunFirst} {
		g.pass("srv_a")
		now.Advance(pause)
		require.Equal(t, "srv_b", g.firstReachable(all).ID)
		now.Advance(time.Microsecond)
		require.Equal(t, "srv_a", g.firstReachable(all).ID)
	}
	now.Advance(2 * shunMost)
	g.pass("srv_c") // the old ones are forgotten
	g.pass("srv_a")
	now.Advance(shunFirst + time.Microsecond)
	require.Equal(t, "srv_a", g.firstReachable(all).ID, "it begins anew")
}

// TestCallsComeBackAsTheyWere writes and reads random calls and replies.
func TestCallsComeBackAsTheyWere(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringN(0, 300, -1)
		c := Call{Operation: text.Draw(t, "operation"), Key: text.Draw(t, "key"), Request: text.Draw(t, "request"),
			At:   time.Unix(0, rapid.Int64().Draw(t, "at")).UTC(),
			Body: []byte(text.Draw(t, "body"))}
		got, actor, err := parseCall(c.appendTo(nil, []byte("who")))
		require.NoError(t, err)
		require.Equal(t, "who", string(actor))
		require.Equal(t, c, Call{Operation: got.Operation, Key: got.Key, Request: got.Request, At: got.At,
			Body: append([]byte{}, got.Body...)})
		p := Reply{Status: rapid.IntRange(0, 999).Draw(t, "status"), Replayed: rapid.Bool().Draw(t, "replayed"),
			Failed: rapid.Bool().Draw(t, "failed"), Body: []byte(text.Draw(t, "answer"))}
		reply, err := parseReply(p.appendTo(nil))
		require.NoError(t, err)
		reply.Body = append([]byte{}, reply.Body...)
		require.Equal(t, p, reply)
	})
}

// TestActorsComeBackAsTheyWere: all that the ledger is told of who asks arrives.
func TestActorsComeBackAsTheyWere(t *testing.T) {
	t.Parallel()
	hour := time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
	caps := quota.Caps{MaxGPUs: 3, MaxPerDay: 5 * money.USD, MaxLead: time.Hour, MaxWindow: time.Minute,
		GPUHoursPerDay: quota.AtMost(7)}
	a := ledger.Actor{KeyID: "key_1", Kind: ledger.AgentKey, OrganizationID: "org_1", UserID: "usr_1", Role: ledger.Member,
		Caps: caps, UserCaps: caps, Makers: []ledger.Bound{{KeyRoot: ledger.KeyRoot{KeyID: "key_2"}, Caps: caps}},
		ExpiresAt: hour, Via: "api"}
	servers := &roll{}
	var seen ledger.Actor
	startMember(t, servers, "srv_a", func(_ context.Context, c *Call) Reply { seen = c.Actor; return Reply{Status: 200} })
	m := startMember(t, servers, "srv_b", refuse(t))
	_, err := m.Ask(t.Context(), &Call{Actor: a})
	require.NoError(t, err)
	require.Equal(t, a, seen)
}

// FuzzFrames reads what no server sent: nothing panics, and nothing large is made.
func FuzzFrames(f *testing.F) {
	c := Call{Operation: "book", Body: []byte("{}")}
	f.Add(appendFrame(nil, call, 7, func(b []byte) []byte { return c.appendTo(b, []byte("{}")) }))
	f.Add(appendFrame(nil, reply, 7, Reply{Status: 201}.appendTo))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 1, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bufio.NewReader(bytes.NewReader(data))
		for {
			got, _, err := readFrame(r, nil)
			if err != nil {
				return
			}
			if len(got.content) > maxFrame {
				t.Fatalf("a frame of %d bytes", len(got.content))
			}
			_, _, _ = parseCall(got.content)
			_, _ = parseReply(got.content)
		}
	})
}

// Who probes a server hears, in words for people, why no other server would reach it.
func TestAProbeSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	m := startMember(t, &roll{}, "srv_a", refuse(t))
	at := ledger.Peer{ID: "srv_a", Address: m.cfg.Address}
	probe := func(to ledger.Peer, pepper, version string) error {
		return Probe(t.Context(), to, []keys.Pepper{pepperOf(t, pepper)}, version, time.Now())
	}
	require.NoError(t, probe(at, "5a", "1"))
	require.ErrorContains(t, probe(at, "5a", "2"), "is of another version")
	require.ErrorContains(t, probe(at, "5b", "1"), "the same FOREWARM_PEPPER")
	require.EqualError(t, probe(ledger.Peer{ID: "srv_b", Address: at.Address}, "5a", "1"),
		"the server that is to be at "+at.Address+" does not answer as it")
	require.EqualError(t, probe(ledger.Peer{ID: "srv_a", Address: "127.0.0.1:1"}, "5a", "1"),
		"nothing answers at 127.0.0.1:1")
}
