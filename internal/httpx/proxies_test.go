package httpx_test

import (
	"crypto/tls"
	"net/http"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/httpx"
)

func TestForwardedAddresses(t *testing.T) {
	t.Parallel()
	proxies, err := httpx.ParseProxies([]string{"10.0.0.0/8", "2001:db8::1", " 192.0.2.1 "})
	require.NoError(t, err)
	for name, c := range map[string]struct {
		peer, plain, standard, want string
	}{
		"no proxy":         {"203.0.113.9:1", "198.51.100.1", "for=198.51.100.1", "203.0.113.9"},
		"one hop":          {"10.1.1.1:1", "198.51.100.1", "", "198.51.100.1"},
		"the client lies":  {"10.1.1.1:1", "8.8.8.8, 198.51.100.1", "", "198.51.100.1"},
		"two proxies":      {"10.1.1.1:1", "8.8.8.8, 198.51.100.1, 10.2.2.2", "", "198.51.100.1"},
		"only proxies":     {"10.1.1.1:1", "10.3.3.3, 10.2.2.2", "", "10.3.3.3"},
		"nothing said":     {"10.1.1.1:1", "", "", "10.1.1.1"},
		"no address":       {"10.1.1.1:1", "198.51.100.1, unknown", "", "10.1.1.1"},
		"with ports":       {"10.1.1.1:1", "198.51.100.1:4711", "", "198.51.100.1"},
		"IPv6":             {"[2001:db8::1]:1", "2001:db8:5::7", "", "2001:db8:5::7"},
		"IPv6 in brackets": {"10.1.1.1:1", "[2001:db8:5::7]:80", "", "2001:db8:5::7"},
		"mapped":           {"[::ffff:10.1.1.1]:1", "::ffff:198.51.100.1", "", "198.51.100.1"},
		"RFC 7239": {"192.0.2.1:1", "",
			`for="[2001:db8:cafe::17]:4711";proto=https, for=10.2.2.2;by="x,y;for=1.1.1.1"`, "2001:db8:cafe::17"},
		"RFC 7239, unknown":   {"192.0.2.1:1", "", `for=198.51.100.1, for=unknown`, "192.0.2.1"},
		"RFC 7239, hidden":    {"192.0.2.1:1", "", `for=198.51.100.1, proto=https`, "192.0.2.1"},
		"both agree":          {"10.1.1.1:1", "198.51.100.1", "for=198.51.100.1", "198.51.100.1"},
		"one is the client's": {"10.1.1.1:1", "198.51.100.1", "for=8.8.8.8", "10.1.1.1"},
	} {
		r := &http.Request{RemoteAddr: c.peer, Header: http.Header{}}
		if c.plain != "" {
			r.Header.Set("X-Forwarded-For", c.plain)
		}
		if c.standard != "" {
			r.Header.Set("Forwarded", c.standard)
		}
		require.Equal(t, c.want, proxies.Client(r).String(), name)
		require.Equal(t, httpx.Peer(r), httpx.Proxies{}.Client(r), "%s: nobody is believed by default", name)
	}
	_, err = httpx.ParseProxies([]string{"10.0.0.0/33"})
	require.ErrorContains(t, err, `"10.0.0.0/33"`)
}

func TestForwardedSchemes(t *testing.T) {
	t.Parallel()
	proxies, err := httpx.ParseProxies([]string{"10.0.0.0/8"})
	require.NoError(t, err)
	secure := func(peer, header, value string) bool {
		return proxies.Secure(&http.Request{RemoteAddr: peer, Header: http.Header{header: {value}}})
	}
	require.True(t, secure("10.1.1.1:1", "X-Forwarded-Proto", "https"))
	require.True(t, secure("10.1.1.1:1", "Forwarded", "for=1.2.3.4;Proto=HTTPS"))
	require.False(t, secure("10.1.1.1:1", "X-Forwarded-Proto", "https, http"), "the nearest proxy knows")
	require.False(t, secure("10.1.1.1:1", "X-Forwarded-Proto", "http"))
	require.False(t, secure("198.51.100.1:1", "X-Forwarded-Proto", "https"), "anybody can say that")
	require.True(t, httpx.Proxies{}.Secure(&http.Request{TLS: &tls.ConnectionState{}}))
}

func TestNetworks(t *testing.T) {
	t.Parallel()
	require.Equal(t, "198.51.100.1/32", httpx.Network(netip.MustParseAddr("198.51.100.1")).String())
	require.Equal(t, "2001:db8:0:1::/64", httpx.Network(netip.MustParseAddr("2001:db8:0:1:2:3:4:5")).String())
	require.False(t, httpx.Network(netip.Addr{}).IsValid())
}
