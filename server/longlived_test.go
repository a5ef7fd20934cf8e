package server_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/server"
)

// No key, no organization and not all of them together take every connection
// with streams and waits; who closes one may open another.
func TestStreamsAndWaitsAreBounded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limits server.StreamLimits
		own    int    // of the key
		whose  string // bound is reached
		other  int    // what a key of another organization gets then
	}{
		"of a key":           {server.StreamLimits{PerKey: 2, PerOrganization: 9}, 2, "this key", 200},
		"of an organization": {server.StreamLimits{PerKey: 9, PerOrganization: 2}, 2, "this organization", 200},
		"of all":             {server.StreamLimits{PerKey: 9, PerOrganization: 9, All: 2}, 2, "all clients", 429},
		"none":               {server.StreamLimits{}, 20, "", 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(cfg *server.Config) { cfg.Streams = c.limits })
			w.createPool()
			w.createTenant("beta")
			p := w.inMemory()
			follow := func(key string) (*line, int) {
				l := w.openLine(p)
				go l.writeText("GET /v1/events/stream HTTP/1.1\r\nHost: localhost\r\n" +
					"Authorization: Bearer " + w.keys[key] +
					"\r\n\r\n")
				resp, err := http.ReadResponse(l.in, nil)
				require.NoError(t, err)
				return l, resp.StatusCode
			}
			var first *line
			for range c.own {
				l, status := follow("root")
				require.Equal(t, 200, status)
				first = l
			}
			_, status := follow("beta")
			require.Equal(t, c.other, status)
			if c.whose == "" {
				require.NoError(t, first.conn.Close())
				return
			}
			_, status = follow("root")
			require.Equal(t, 429, status)
			refused := w.refuse("root", http.MethodPost, "/v1/allocations", `{"pool":"lab","gpus":1}`, "Prefer",
				"wait=30", "Idempotency-Key", "k")
			require.Equal(t, contract.CodeRateLimited, refused.Code)
			require.Contains(t, refused.Detail, "2 event streams and waiting requests of "+c.whose)
			require.Equal(t, 5, refused.RetryAfter)
			require.NotEmpty(t, refused.Fixes)
			require.Equal(t, 202, w.send("root", http.MethodPost, "/v1/allocations", `{"pool":"lab","gpus":1}`,
				"Idempotency-Key", "k").Code, "what does not wait passes")
			require.Equal(t, 200, w.send("", http.MethodGet, "/healthz", "").Code)
			require.NoError(t, first.conn.Close())
			require.Eventually(t, func() bool { _, status := follow("root"); return status == 200 }, time.Minute,
				time.Millisecond)
		})
	}
}
