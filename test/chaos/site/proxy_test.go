package site

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// startEcho answers each line with itself and returns its port.
func startEcho(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				lines := bufio.NewScanner(conn)
				for lines.Scan() {
					fmt.Fprintln(conn, lines.Text())
				}
			}()
		}
	}()
	return l.Addr().(*net.TCPAddr).Port
}

func newTestProxy(t *testing.T) *Proxy {
	t.Helper()
	p, err := (&Site{proxies: newProxies()}).newProxy("test", startEcho(t))
	require.NoError(t, err)
	t.Cleanup(p.Cut)
	return p
}

// askLine sends a line and returns the answer, which comes long before a minute is over.
func askLine(t *testing.T, conn net.Conn, text string) (string, error) {
	t.Helper()
	return askLineWithin(t, conn, text, time.Minute)
}

func askLineWithin(t *testing.T, conn net.Conn, text string, within time.Duration) (string, error) {
	t.Helper()
	require.NoError(t, conn.SetDeadline(time.Now().Add(within)))
	if _, err := fmt.Fprintln(conn, text); err != nil {
		return "", err
	}
	return bufio.NewReader(conn).ReadString('\n')
}

func dialProxy(t *testing.T, p *Proxy) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", p.Port))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// Each fault does what it says to a connection that was there before, and after
// it is healed everything goes through again, on the same port.
func TestProxyFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		act    func(*Proxy) error
		silent bool // no answer, and no word either
		within time.Duration
	}{
		"cut":      {func(p *Proxy) error { p.Cut(); return nil }, false, time.Minute},
		"halfopen": {(*Proxy).HalfOpen, true, 500 * time.Millisecond},
		"swallow":  {(*Proxy).Swallow, true, 500 * time.Millisecond},
		"truncate": {func(p *Proxy) error { return p.Truncate(3) }, false, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newTestProxy(t)
			for range 3 {
				conn := dialProxy(t, p)
				answer, err := askLine(t, conn, "hello")
				require.NoError(t, err)
				require.Equal(t, "hello\n", answer)
				require.NoError(t, c.act(p))
				_, err = askLineWithin(t, conn, "are you there?", c.within)
				require.Error(t, err)
				require.Equal(t, c.silent, errors.Is(err, os.ErrDeadlineExceeded), "%v", err)
				require.NoError(t, p.Heal(t.Context()))
			}
			answer, err := askLine(t, dialProxy(t, p), "again")
			require.NoError(t, err)
			require.Equal(t, "again\n", answer)
		})
	}
}

func TestADelayLetsEverythingThrough(t *testing.T) {
	t.Parallel()
	p := newTestProxy(t)
	conn := dialProxy(t, p)
	require.NoError(t, p.Delay(60, 0))
	begun := time.Now()
	answer, err := askLine(t, conn, "hello")
	require.NoError(t, err)
	require.Equal(t, "hello\n", answer)
	require.GreaterOrEqual(t, time.Since(begun), 60*time.Millisecond)
	require.NoError(t, p.Heal(t.Context()))
}
