package work_test

import (
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/httpx"
	"github.com/forewarm/forewarm/node/work/worktest"
)

// A holder who takes the port of the control plane, once that has ended, is sent no key.
func TestNoKeyIsSentToAHolder(t *testing.T) {
	t.Parallel()
	users := map[int]bool{httpx.FirstHolder - 1: true, httpx.FirstHolder: false, httpx.LastHolder: false,
		httpx.LastHolder + 1: true}
	if os.Getuid() != 0 { // who can listen as oneself alone, and is no holder
		users = map[int]bool{os.Getuid(): true}
	}
	for user, told := range users {
		l := worktest.ListenAs(t, strconv.Itoa(user))
		var asked atomic.Int32
		s := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(
			func(http.ResponseWriter, *http.Request) { asked.Add(1) })}
		go func() { _ = s.Serve(l) }()
		t.Cleanup(func() { _ = s.Close() })
		_, port, err := net.SplitHostPort(l.Addr().String())
		require.NoError(t, err)
		by, held := httpx.HolderAt(netip.MustParseAddrPort(l.Addr().String()))
		require.Equal(t, !told, held)
		require.True(t, told || by == uint32(user)) //nolint:gosec // it is a user's number
		c := httpx.NewClient(httpx.Config{Transport: httpx.NewGuardedTransport()})
		resp, err := c.Get("http://localhost:" + port)
		if told {
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.EqualValues(t, 1, asked.Load())
			continue
		}
		var refused *httpx.HeldPortError
		require.ErrorAs(t, err, &refused)
		require.Contains(t, refused.Error(), "nothing was sent")
		require.Zero(t, asked.Load())
	}
}

// between is a connection between two addresses.
type between struct {
	net.Conn
	own, peer string
}

func (b between) LocalAddr() net.Addr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(b.own)) }
func (b between) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(b.peer))
}

// A machine speaks to itself by each of its addresses, and a holder may listen on all of them. What another machine
// listens on is none of this one's.
func TestAHolderIsBehindEachAddressOfTheMachine(t *testing.T) {
	t.Parallel()
	user, is := httpx.FirstHolder, true
	if os.Getuid() != 0 { // who can listen as oneself alone, and is no holder
		user, is = os.Getuid(), false
	}
	l := worktest.ListenAtAs(t, "0.0.0.0:0", strconv.Itoa(user))
	t.Cleanup(func() { _ = l.Close() })
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	for _, c := range []struct {
		own, peer string
		want      bool
	}{
		{"127.0.0.1:40000", "127.0.0.1:" + port, is},
		{"10.1.2.3:40000", "127.0.0.1:" + port, is},
		{"10.1.2.3:40000", "10.1.2.3:" + port, is},
		{"[::ffff:10.1.2.3]:40000", "10.1.2.3:" + port, is},
		{"[fd00::2]:40000", "[fd00::2]:" + port, is},
		{"10.1.2.3:40000", "10.1.2.4:" + port, false},
	} {
		at, held := httpx.HolderBehind(between{own: c.own, peer: c.peer})
		require.Equal(t, c.want, held, c.peer)
		require.True(t, !held || at == c.peer)
	}
}
