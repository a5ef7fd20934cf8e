package peers

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/keys"
	"github.com/forewarm/forewarm/ledger"
)

// lockedText is a log that is read while it is written.
type lockedText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lockedText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// TestStrangersAreRefused: only a server with the pepper, and of the same version, is
// asked or answered, and only the one that is said to be there.
func TestStrangersAreRefused(t *testing.T) {
	t.Parallel()
	cases := map[string]func(*testing.T, *Config){
		"another pepper":  func(t *testing.T, c *Config) { t.Helper(); c.Peppers = []keys.Pepper{pepperOf(t, "ab")} },
		"another version": func(_ *testing.T, c *Config) { c.Version = "2" },
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := &roll{}
			startMember(t, servers, "srv_a", refuse(t))
			m := startMember(t, servers, "srv_b", refuse(t), func(c *Config) { change(t, c) })
			require.False(t, m.IsFollower())
			_, err := m.Ask(t.Context(), &Call{})
			require.ErrorIs(t, err, ErrNobody)
		})
	}
	t.Run("another server at the address", func(t *testing.T) {
		t.Parallel()
		first := startMember(t, &roll{}, "srv_a", refuse(t))
		m := startMember(t, &roll{all: []ledger.Peer{{ID: "srv_x", Address: first.cfg.Address}}}, "srv_b", refuse(t))
		require.False(t, m.IsFollower())
	})
	t.Run("no certificate", func(t *testing.T) {
		t.Parallel()
		first := startMember(t, &roll{}, "srv_a", refuse(t))
		dialer := tls.Dialer{Config: &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{"forewarm-peers/1"},
			InsecureSkipVerify: true}} //nolint:gosec // it is the other side that is tested
		conn, err := dialer.DialContext(t.Context(), "tcp", first.cfg.Address)
		if err == nil { // TLS 1.3 tells the client with its first reading
			_, err = conn.Read(make([]byte, 1))
			require.NoError(t, conn.Close())
		}
		require.Error(t, err)
	})
}

// TestAMistakenAddressIsToldAtTheStart: not only when it is the server's turn to decide.
func TestAMistakenAddressIsToldAtTheStart(t *testing.T) {
	t.Parallel()
	other := startMember(t, &roll{}, "srv_x", refuse(t))
	for name, address := range map[string]string{"another server": other.cfg.Address, "nobody": "127.0.0.1:1"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log := &lockedText{}
			startMember(t, &roll{}, "srv_a", refuse(t), func(c *Config) {
				c.Address, c.Logger = address, slog.New(slog.NewTextHandler(log, nil))
			})
			require.Eventually(t, func() bool { return strings.Contains(log.String(), "does not reach itself") },
				time.Minute, time.Millisecond)
		})
	}
}

// stranger connects without a word, as who attacks does.
func stranger(t *testing.T, address string) net.Conn {
	t.Helper()
	var dialer net.Dialer
	conn, err := dialer.DialContext(t.Context(), "tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// TestStrangersKeepNobodyOut: however many connect and say nothing, a server gets in.
func TestStrangersKeepNobodyOut(t *testing.T) {
	t.Parallel()
	servers := &roll{}
	first := startMember(t, servers, "srv_a", echo)
	for range 2 * maxStrangers {
		stranger(t, first.cfg.Address)
	}
	m := startMember(t, servers, "srv_b", refuse(t))
	_, err := m.Ask(t.Context(), &Call{})
	require.NoError(t, err)
}

// TestStrangersFillNoLog: one line tells of all, and nothing that they sent.
func TestStrangersFillNoLog(t *testing.T) {
	t.Parallel()
	log := &lockedText{}
	m := startMember(t, &roll{}, "srv_a", refuse(t), func(c *Config) {
		c.Logger = slog.New(slog.NewTextHandler(log, nil))
	})
	for range 20 {
		dialer := tls.Dialer{Config: &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{"secret word"},
			InsecureSkipVerify: true}} //nolint:gosec // it is the other side that is tested
		_, err := dialer.DialContext(t.Context(), "tcp", m.cfg.Address)
		require.Error(t, err)
	}
	m.stop(t)
	require.Equal(t, 1, strings.Count(log.String(), "refused who"), log.String())
	require.NotContains(t, log.String(), "secret word")
}

// dialAs connects as another server, which then says what the test writes.
func dialAs(t *testing.T, m *member) *tls.Conn {
	t.Helper()
	dialer := tls.Dialer{Config: m.security}
	conn, err := dialer.DialContext(t.Context(), "tcp", m.cfg.Address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	secure, ok := conn.(*tls.Conn)
	require.True(t, ok)
	return secure
}

// TestANumberAtWorkIsNotTakenAgain: the connection ends, and what is at work with it.
func TestANumberAtWorkIsNotTakenAgain(t *testing.T) {
	t.Parallel()
	var asked sync.WaitGroup
	asked.Add(1)
	m := startMember(t, &roll{}, "srv_a", func(ctx context.Context, _ *Call) Reply {
		asked.Done() // twice is a panic
		<-ctx.Done()
		return Reply{Status: 503, Failed: true}
	})
	conn := dialAs(t, m)
	c := Call{Operation: "slow"}
	one := appendFrame(nil, call, 7, func(b []byte) []byte { return c.appendTo(b, []byte("{}")) })
	_, err := conn.Write(append(one, one...))
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, conn)
	require.NoError(t, err, "it is closed")
	asked.Wait()
}

// TestWhoDoesNotReadIsNotWaitedFor: what waits for it is bounded.
func TestWhoDoesNotReadIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	o := newOutbox()
	for range 2 * maxWaiting / maxBody {
		o.addFrame(reply, 1, Reply{Status: 200, Body: make([]byte, maxBody)}.appendTo)
	}
	require.LessOrEqual(t, len(o.waiting), maxWaiting+maxFrame)
	ours, theirs := net.Pipe()
	defer theirs.Close()
	require.ErrorIs(t, o.writeFrames(ours, nil), errNotRead)
	require.NoError(t, ours.Close())
}

// TestOddRepliesAreNone: what cannot be an answer is as if none had come.
func TestOddRepliesAreNone(t *testing.T) {
	t.Parallel()
	for _, p := range []Reply{{}, {Status: 42}, {Status: 101}, {Status: 302}, {Status: 700}, {Status: 500},
		{Status: 200, Failed: true}, {Status: 200, Body: make([]byte, maxBody+1)}} {
		servers := &roll{}
		first := startMember(t, servers, "srv_a", func(context.Context, *Call) Reply { return p })
		m := startMember(t, servers, "srv_b", refuse(t))
		_, err := m.Ask(t.Context(), &Call{})
		require.ErrorIs(t, err, ErrLost, "%d", p.Status)
		m.stop(t)
		first.stop(t)
	}
}

// TestLargeRequestsAreDecidedWhereTheyCome: they are rare, and would hold others up.
func TestLargeRequestsAreDecidedWhereTheyCome(t *testing.T) {
	t.Parallel()
	servers := &roll{}
	startMember(t, servers, "srv_a", refuse(t))
	m := startMember(t, servers, "srv_b", refuse(t))
	_, err := m.Ask(t.Context(), &Call{Body: make([]byte, maxBody+1)})
	require.ErrorIs(t, err, ErrNobody)
}
