package server_test

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/server"
	"github.com/forewarm/forewarm/server/peers"
)

// TestAFollowerAnswersAsTheServerThatDecides has every conversation with a server that
// has another one decide. Each answer is the same to the byte.
func TestAFollowerAnswersAsTheServerThatDecides(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var mu sync.Mutex
	forwarded := 0.0
	t.Run("stories", func(t *testing.T) {
		for _, file := range files {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
				t.Parallel()
				text, err := os.ReadFile(file)
				require.NoError(t, err)
				p := newPair(t, servesOld(file))
				describesOld(file, p.world)
				s := &story{world: p.world, saved: map[string]string{}}
				require.Equal(t, string(text), string(s.replay(string(text))))
				mu.Lock()
				defer mu.Unlock()
				forwarded += p.countForwarded()
			})
		}
	})
	require.Greater(t, forwarded, 30.0, "the conversations are about what is forwarded, too")
}

// pair is a world whose server has another one decide.
type pair struct {
	*world
	decider  *server.Server
	registry prometheus.Gatherer
	end      context.CancelFunc // ends the server that decides
	ended    chan error
}

func newPair(t *testing.T, change ...func(*server.Config)) *pair {
	t.Helper()
	registry := obs.NewRegistry()
	p := &pair{registry: registry, ended: make(chan error, 1)}
	metrics, err := obs.NewMetrics(registry)
	require.NoError(t, err)
	var first server.Config
	p.world = newWorld(t, append(change, func(c *server.Config) {
		first = *c
		store, ok := c.Ledger.Store().(ledger.Peers)
		require.True(t, ok)
		first.Peers, c.Peers = peerConfig(t, store, "srv_a"), peerConfig(t, store, "srv_b")
		first.IDs, c.Metric = &ids.Sequence{}, metrics
	})...)
	decider, err := server.New(first)
	require.NoError(t, err)
	p.decider = decider
	decider.Attend(t.Context())
	ctx, cancel := context.WithCancel(t.Context())
	p.end = cancel
	go func() { p.ended <- decider.Run(ctx) }()
	p.server.Attend(t.Context())
	require.True(t, p.server.IsFollower())
	t.Cleanup(func() {
		cancel()
		p.server.EndPeers(context.WithoutCancel(t.Context()))
		require.NoError(t, <-p.ended)
	})
	return p
}

func peerConfig(t *testing.T, list ledger.Peers, id string) *peers.Config {
	t.Helper()
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return &peers.Config{Peers: list, ID: id, Listener: l, Address: l.Addr().String()}
}

// countForwarded is how many requests were sent on and answered.
func (p *pair) countForwarded() float64 {
	families, err := p.registry.Gather()
	require.NoError(p.t, err)
	for _, f := range families {
		if f.GetName() == "forewarm_requests_forwarded_total" {
			return f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	return 0
}

// TestAFollowerDecidesWhenNobodyReplies: whoever decided is gone, and the next request
// is answered all the same, once.
func TestAFollowerDecidesWhenNobodyReplies(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.createPool()
	body := `{"pool":"lab","gpus":1,"start":"2026-03-02T12:00:00Z","end":"2026-03-02T13:00:00Z"}`
	first := p.send("root", http.MethodPost, "/v1/reservations", body, "Idempotency-Key", "one")
	require.Equal(t, http.StatusCreated, first.Code, first.Body.String())
	require.InDelta(t, 1, p.countForwarded(), 0)
	p.end()
	require.NoError(t, <-p.ended)
	p.ended <- nil
	again := p.send("root", http.MethodPost, "/v1/reservations", body, "Idempotency-Key", "one")
	require.Equal(t, "true", again.Header().Get("Idempotency-Replayed"))
	require.Equal(t, first.Body.String(), again.Body.String())
	second := p.send("root", http.MethodPost, "/v1/reservations", body, "Idempotency-Key", "two")
	require.Equal(t, http.StatusCreated, second.Code, second.Body.String())
	require.InDelta(t, 1, p.countForwarded(), 0, "nobody else decides any more")
}
