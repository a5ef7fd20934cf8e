package daemon

import (
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/forewarm/forewarm/internal/httpx"
	"github.com/forewarm/forewarm/server"
)

// Server says how the API is reached, and how much of it one client may take.
type Server struct {
	// TrustedProxies, FOREWARM_TRUSTED_PROXIES, are addresses and networks, joined by commas.
	TrustedProxies []string `yaml:"trusted_proxies"`
	// PublicURL, FOREWARM_PUBLIC_URL, is where people reach the API. Empty: where it listens.
	PublicURL string `yaml:"public_url"`
	// MetricsListen is where a server shows /metrics, /healthz and /readyz without a
	// key, also while its database is away and no key can be looked up. Empty: only
	// beside the API, to an operator's key.
	MetricsListen string `yaml:"metrics_listen"` // FOREWARM_SERVER_METRICS_LISTEN
	// PeersListen, FOREWARM_SERVER_PEERS_LISTEN, is where a server listens to the
	// others of its installation; off: it stays alone. Empty: on a free port where
	// the API listens.
	PeersListen string `yaml:"peers_listen"`
	// PeersAddress, FOREWARM_SERVER_PEERS_ADDRESS, is a host, or host:port, at which
	// the others reach it. Empty: it is found out.
	PeersAddress string `yaml:"peers_address"`
	// DownloadDir, FOREWARM_DOWNLOAD_DIR, has the builds of forewarm-node that machines
	// download from the API, as make release/node makes them. Empty: where this program is.
	DownloadDir string `yaml:"download_dir"`
	// MaxConnections bounds open connections, and MaxPerAddress those of one IPv4
	// address or IPv6 /64, or its open requests behind a trusted proxy. Negative:
	// no bound.
	MaxConnections int `yaml:"max_connections"`
	MaxPerAddress  int `yaml:"max_connections_per_address"`
	// MaxStreamsPerKey and MaxStreamsPerOrganization bound open event streams and
	// requests that wait. Negative: no bound but the part of MaxConnections.
	MaxStreamsPerKey          int `yaml:"max_streams_per_key"`
	MaxStreamsPerOrganization int `yaml:"max_streams_per_organization"`
	// Compat serves the routes of older schedulers, too.
	Compat bool `yaml:"compat"`
}

// edge is what Server means once it is read.
type edge struct {
	proxies httpx.Proxies
	public  string // the public URL; may be empty
	host    string // of the public URL; empty without one
	tls     bool   // the public URL has it
	limits  httpx.ConnLimits
	streams server.StreamLimits
	compat  bool
	// downloads are the programs that it hands out: paths by name.
	downloads map[string]string
}

// streamLimits are the bounds on streams, of which all together take half of the
// connections, an organization a quarter and a key an eighth at most.
func (s Server) streamLimits() server.StreamLimits {
	bounds := server.StreamLimits{PerKey: max(0, s.MaxStreamsPerKey),
		PerOrganization: max(0, s.MaxStreamsPerOrganization)}
	part := func(set, of int) int {
		most := max(1, s.MaxConnections/of)
		if set == 0 {
			return most
		}
		return min(set, most)
	}
	if s.MaxConnections > 0 {
		bounds = server.StreamLimits{PerKey: part(bounds.PerKey, 8), PerOrganization: part(bounds.PerOrganization, 4),
			All: part(0, 2)}
	}
	return bounds
}

func (c Config) newEdge() (edge, error) {
	proxies, err := httpx.ParseProxies(c.Server.TrustedProxies)
	if err != nil {
		return edge{}, c.valueError("server.trusted_proxies", err.Error(),
			"list the proxies in front of the API, such as [127.0.0.1, 10.1.0.0/16]")
	}
	e := edge{proxies: proxies, limits: httpx.ConnLimits{All: max(0, c.Server.MaxConnections),
		PerAddress: max(0, c.Server.MaxPerAddress)}}
	e.streams, e.compat = c.Server.streamLimits(), c.Server.Compat
	if e.downloads, err = c.findDownloads(); err != nil {
		return edge{}, err
	}
	if c.Server.PublicURL == "" {
		return e, nil
	}
	public, err := url.Parse(c.Server.PublicURL)
	if err != nil || public.Hostname() == "" || public.Scheme != "https" && public.Scheme != "http" ||
		strings.Trim(public.Path, "/") != "" {
		return edge{}, c.valueError("server.public_url", fmt.Sprintf("%q is not the URL of a host", c.Server.PublicURL),
			"write one such as https://forewarm.example.org")
	}
	e.public = strings.TrimRight(c.Server.PublicURL, "/")
	e.host, e.tls = strings.ToLower(public.Hostname()), public.Scheme == "https"
	return e, nil
}

// configureServer tells the server what it has to know.
func (e edge) configureServer(c *server.Config) {
	c.Proxies, c.PublicTLS, c.OpenPerAddress, c.Streams = e.proxies, e.tls, e.limits.PerAddress, e.streams
	c.Downloads, c.PublicURL, c.Compat = e.downloads, e.public, e.compat
	if e.host != "" {
		c.Hosts = append(c.Hosts, e.host)
	}
}

// boundListener is the listener of the API.
func (c Config) boundListener(l net.Listener) (net.Listener, error) {
	e, err := c.newEdge()
	if err != nil {
		return nil, err
	}
	return httpx.LimitConnections(l, e.limits, e.proxies), nil
}
