package daemon

import (
	"os"
	"strings"

	"github.com/forewarm/forewarm/internal/obs"
)

// variable is one of the environment that goes before a key of the file.
type variable struct {
	name string
	key  string
	set  func(c *Config, value string)
}

var variables = []variable{
	{"FOREWARM_LISTEN", "listen", func(c *Config, v string) { c.Listen = v }},
	{"FOREWARM_DATA_DIR", "data_dir", func(c *Config, v string) { c.DataDir = v }},
	{"FOREWARM_METRICS_LISTEN", "metrics_listen", func(c *Config, v string) { c.MetricsListen = v }},
	{"FOREWARM_DATABASE", "database", func(c *Config, v string) { c.Database = obs.NewSecret(v) }},
	{"FOREWARM_REDIS", "redis", func(c *Config, v string) { c.Redis = obs.NewSecret(v) }},
	{"FOREWARM_PEPPER", "pepper", func(c *Config, v string) { c.Pepper = obs.NewSecret(v) }},
	{"FOREWARM_TRUSTED_PROXIES", "server.trusted_proxies",
		func(c *Config, v string) { c.Server.TrustedProxies = strings.Split(v, ",") }},
	{"FOREWARM_SERVER_METRICS_LISTEN", "server.metrics_listen",
		func(c *Config, v string) { c.Server.MetricsListen = v }},
	{"FOREWARM_SERVER_PEERS_LISTEN", "server.peers_listen", func(c *Config, v string) { c.Server.PeersListen = v }},
	{"FOREWARM_SERVER_PEERS_ADDRESS", "server.peers_address", func(c *Config, v string) { c.Server.PeersAddress = v }},
	{"FOREWARM_PUBLIC_URL", "server.public_url", func(c *Config, v string) { c.Server.PublicURL = v }},
	{"FOREWARM_DOWNLOAD_DIR", "server.download_dir", func(c *Config, v string) { c.Server.DownloadDir = v }},
}

// overlayEnvironment lays the environment over the file.
func (c *Config) overlayEnvironment() {
	for _, one := range variables {
		if v := os.Getenv(one.name); v != "" {
			one.set(c, v)
			c.noteOrigin(one.key, one.name)
		}
	}
}

// noteOrigin keeps that the value of a key is no longer the file's: whoever has to correct it looks for it elsewhere.
func (c *Config) noteOrigin(key, setBy string) {
	if c.origins == nil {
		c.origins = map[string]string{}
	}
	c.origins[key] = setBy
}
