package server_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/httpx"
	"github.com/forewarm/forewarm/server"
	"github.com/forewarm/forewarm/server/auth"
)

// Behind a proxy that is named, each client is its own.
func TestForwardedClients(t *testing.T) {
	t.Parallel()
	proxies, err := httpx.ParseProxies([]string{"10.0.0.0/8"})
	require.NoError(t, err)
	w := newWorld(t, func(c *server.Config) {
		c.Limits, c.Proxies = unlimited, proxies
		c.Limits.Failures = auth.Rate{PerSecond: 0.2, Burst: 1}
	})
	w.mintStrangerKey("bad")
	get := func(client string) int {
		return w.sendFrom("10.1.1.1", "bad", http.MethodGet, "/v1/whoami", "X-Forwarded-For", client).Code
	}
	require.Equal(t, []int{401, 429, 401, 429}, []int{get("198.51.100.1"), get("8.8.8.8, 198.51.100.1"),
		get("198.51.100.2"), get("198.51.100.1")})
	require.Contains(t, w.log.String(), "peer=198.51.100.2")
}

// A client that keeps many requests open through a proxy keeps out itself.
func TestRequestsOfAClientAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		proxies, err := httpx.ParseProxies([]string{"192.0.2.0/24"})
		require.NoError(t, err)
		w := newWorld(t, func(c *server.Config) { c.Clock, c.Proxies, c.OpenPerAddress = clock.System{}, proxies, 2 })
		w.createPool()
		p := w.inMemory()
		waiting := make(chan int)
		for _, key := range []string{"a", "b"} {
			l := w.openLine(p)
			go func() {
				l.writeText(w.allocateRequest(key, "Prefer: wait=30", "X-Forwarded-For: 198.51.100.1"))
				status, _, _ := l.readAnswer()
				waiting <- status
			}()
		}
		time.Sleep(time.Second)
		ask := func(client string) int {
			l := w.openLine(p)
			go l.writeText(w.requestHead(http.MethodGet, "/v1/whoami", "X-Forwarded-For: "+client))
			status, _, _ := l.readAnswer()
			return status
		}
		require.Equal(t, 429, ask("198.51.100.1"))
		require.Equal(t, 200, ask("198.51.100.2"))
		require.Equal(t, []int{202, 202}, []int{<-waiting, <-waiting})
		require.Equal(t, 200, ask("198.51.100.1"))
	})
}
