//go:build linux

package httpx_test

import (
	"net"
	"net/netip"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/httpx"
)

// The sockets of a port, whoever is asked for them: who listens there, and both ends of what is connected.
func TestSocketsOfAPort(t *testing.T) {
	t.Parallel()
	ways := map[string]func(uint16) []httpx.Socket{"as asked": httpx.SocketsAt, "tables": httpx.ReadSockets,
		"kernel": func(port uint16) []httpx.Socket {
			all, err := httpx.AskForSockets(port)
			require.NoError(t, err)
			return all
		}}
	for _, network := range []string{"tcp4", "tcp6"} {
		host := map[string]string{"tcp4": "127.0.0.1:0", "tcp6": "[::1]:0"}[network]
		listener, err := net.Listen(network, host)
		if err != nil {
			t.Logf("this machine has no %s", network)
			continue
		}
		defer func() { _ = listener.Close() }()
		at := netip.MustParseAddrPort(listener.Addr().String())
		client, err := net.Dial(network, at.String())
		require.NoError(t, err)
		defer func() { _ = client.Close() }()
		server, err := listener.Accept()
		require.NoError(t, err)
		defer func() { _ = server.Close() }()
		mine := uint32(os.Getuid()) //nolint:gosec // the kernel's are 32 bits
		from := netip.MustParseAddrPort(client.LocalAddr().String())
		for name, ask := range ways {
			require.ElementsMatch(t, []httpx.Socket{{Local: at, UID: mine, Listens: true}, {Local: at, UID: mine}},
				ask(at.Port()), "%s, %s", network, name)
			require.Equal(t, []httpx.Socket{{Local: from, UID: mine}}, ask(from.Port()), "%s, %s", network, name)
		}
	}
}

// What has an address of all is found at each of them, of IPv4, too.
func TestSocketsOfAllAddresses(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", ":0")
	require.NoError(t, err)
	defer func() { _ = listener.Close() }()
	at := netip.MustParseAddrPort(listener.Addr().String())
	asked, err := httpx.AskForSockets(at.Port())
	require.NoError(t, err)
	require.Equal(t, httpx.ReadSockets(at.Port()), asked)
	require.Len(t, asked, 1)
	require.True(t, asked[0].Local.Addr().IsUnspecified())
}
