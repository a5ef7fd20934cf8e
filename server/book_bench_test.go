package server_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/server"
)

// BenchmarkBook is one POST /v1/reservations without a network: a new booking, and
// one whose stored answer is sent again, for which the ledger does the least.
func BenchmarkBook(b *testing.B) {
	b.Run("new", func(b *testing.B) { benchmarkBook(b, 1<<30) })
	b.Run("again", func(b *testing.B) { benchmarkBook(b, 1) })
}

// benchmarkBook books with so many different idempotency keys.
func benchmarkBook(b *testing.B, keys int) {
	metrics, err := obs.NewMetrics(prometheus.NewRegistry())
	require.NoError(b, err)
	w := newWorld(b, func(c *server.Config) {
		c.Logger, c.Metric = obs.NewLogger(io.Discard, obs.Config{}), metrics
	})
	w.createPool()
	body := fmt.Sprintf(`{"pool":"lab","gpus":1,"start":%q,"end":%q}`, begin.Add(24*time.Hour).Format(time.RFC3339),
		begin.Add(25*time.Hour).Format(time.RFC3339))
	r := httptest.NewRequest(http.MethodPost, "/v1/reservations", nil)
	r.Host = "localhost"
	r.Header.Set("Authorization", "Bearer "+w.keys["root"])
	r.Header.Set("Content-Type", "application/json")
	r.ContentLength = int64(len(body))
	var last string
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		out := httptest.NewRecorder()
		r.Body = io.NopCloser(strings.NewReader(body))
		r.Header.Set("Idempotency-Key", fmt.Sprint(i%keys))
		w.server.ServeHTTP(out, r)
		if last = out.Body.String(); out.Code != http.StatusCreated {
			b.Fatal(out.Code, last)
		}
		if keys > 1 {
			b.StopTimer()
			_, id, _ := strings.Cut(last, `"id":"`)
			require.Equal(b, 200, w.send("root", http.MethodDelete, "/v1/reservations/"+id[:30], "").Code)
			b.StartTimer()
		}
	}
}
