package httpx_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/httpx"
)

func TestGuard(t *testing.T) {
	t.Parallel()
	const (
		always  = "always"
		private = "with AllowPrivate"
		never   = "never"
	)
	for addr, want := range map[string]string{
		"8.8.8.8": always, "2606:4700::1111": always, "172.32.0.1": always, "::ffff:8.8.8.8": always,
		"100.128.0.1": always,
		"10.1.2.3":    private, "172.16.0.1": private, "192.168.1.1": private, "127.0.0.1": private,
		"127.9.9.9":  private,
		"100.64.0.1": private, "::1": private, "fd12::1": private, "::ffff:10.0.0.1": private,
		"::ffff:127.0.0.1": private,
		"169.254.169.254":  never, "::ffff:169.254.169.254": never, "fe80::1": never, "fe80::1%eth0": never,
		"fd00:ec2::254": never, "100.100.100.200": never, "168.63.129.16": never, "192.0.0.192": never,
		"0.0.0.0": never, "::": never, "224.0.0.1": never, "255.255.255.255": never, "ff02::1": never,
		"198.18.0.1":         never,
		"64:ff9b::a9fe:a9fe": never, "2002:7f00:1::": never, "::127.0.0.1": never, "2001::1": never,
	} {
		ip := netip.MustParseAddr(addr)
		require.Equal(t, want == always, httpx.Guard{}.Allow(ip) == nil, "%s", addr)
		require.Equal(t, want != never, httpx.Guard{AllowPrivate: true}.Allow(ip) == nil, "%s with AllowPrivate", addr)
	}
	require.Error(t, httpx.Guard{AllowPrivate: true}.Allow(netip.Addr{}))
}

func TestGuardReadsWhatTheDialerGivesIt(t *testing.T) {
	t.Parallel()
	require.NoError(t, httpx.Guard{}.Control("tcp4", "8.8.8.8:443", nil))
	var denied *httpx.DeniedError
	require.ErrorAs(t, httpx.Guard{}.Control("tcp6", "[fe80::1%eth0]:443", nil), &denied)
	require.Error(t, httpx.Guard{}.Control("tcp", "not an address", nil))
}
