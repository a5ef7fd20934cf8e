package site

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strconv"
	"strings"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/forewarm/forewarm/internal/forklock"
)

// Proxy stands between forewarm and one of its servers.
type Proxy struct {
	Name  string
	Port  int
	proxy *toxiproxy.Proxy
}

// newProxies makes the server that the proxies belong to. Its API is not
// served: the proxies are called in this process.
func newProxies() *toxiproxy.ApiServer {
	return toxiproxy.NewServer(toxiproxy.NewMetricsContainer(prometheus.NewRegistry()), zerolog.Nop())
}

func (s *Site) newProxy(name string, upstream int) (*Proxy, error) {
	port := forklock.FreePort()
	p := toxiproxy.NewProxy(s.proxies, name, loopbackAddress(port), loopbackAddress(upstream))
	if err := p.Start(); err != nil {
		return nil, fmt.Errorf("starting the proxy of %s: %w", name, err)
	}
	return &Proxy{Name: name, Port: port, proxy: p}, nil
}

func loopbackAddress(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// Cut ends every connection. New ones are refused until Heal.
func (p *Proxy) Cut() { p.proxy.Stop() }

// Delay lets everything through, late.
func (p *Proxy) Delay(milliseconds, jitter int) error {
	return p.addToxic("latency", "downstream", map[string]int{"latency": milliseconds, "jitter": jitter})
}

// HalfOpen lets questions through and drops the answers, without a word.
func (p *Proxy) HalfOpen() error {
	return p.addToxic("timeout", "downstream", map[string]int{"timeout": 0})
}

// Swallow takes what is sent and lets nothing through in either direction.
func (p *Proxy) Swallow() error {
	if err := p.addToxic("timeout", "upstream", map[string]int{"timeout": 0}); err != nil {
		return err
	}
	return p.HalfOpen()
}

// Truncate ends each connection in the middle of an answer, after so many bytes.
func (p *Proxy) Truncate(bytes int) error {
	return p.addToxic("limit_data", "downstream", map[string]int{"bytes": bytes})
}

func (p *Proxy) addToxic(kind, stream string, attributes map[string]int) error {
	text, err := json.Marshal(map[string]any{"type": kind, "stream": stream, "attributes": attributes})
	if err == nil {
		_, err = p.proxy.Toxics.AddToxicJson(strings.NewReader(string(text)))
	}
	if err != nil {
		return fmt.Errorf("having the proxy of %s %s: %w", p.Name, kind, err)
	}
	return nil
}

// Heal lets everything through again. The connections that there were are
// ended: what was dropped cannot be made good.
func (p *Proxy) Heal(ctx context.Context) error {
	p.proxy.Stop()
	p.proxy.Toxics.ResetToxics(ctx)
	// Somebody's outgoing connection may have been given the port meanwhile.
	if err := retryUntil(ctx, ending, func(context.Context) error { return p.proxy.Start() }); err != nil {
		return fmt.Errorf("starting the proxy of %s again: %w", p.Name, err)
	}
	return nil
}
