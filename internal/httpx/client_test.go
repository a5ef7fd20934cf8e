package httpx_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/httpx"
	"github.com/forewarm/forewarm/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.VerifyTestMain(m) }

// startExchange starts a server and returns a client of it, both of which end with
// the test.
func startExchange(t *testing.T, c httpx.Config, h http.HandlerFunc) (*http.Client, string) {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	server.Config = httpx.NewServer("", h)
	server.Start()
	if c.Transport == nil {
		c.Transport = &http.Transport{}
	}
	client := httpx.NewClient(c)
	t.Cleanup(func() {
		client.CloseIdleConnections()
		server.Close()
	})
	return client, server.URL
}

func getURL(t *testing.T, client *http.Client, url string) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	return client.Do(req)
}

func TestAnAnswerIsReadUpToTheLimit(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		limit   int64
		size    int
		tooLong bool
	}{{10, 9, false}, {10, 10, false}, {10, 11, true}, {10, 1 << 20, true}, {-1, 3 << 20, false}, {0, 1 << 20, false},
		{0, 1<<20 + 1, true}} {
		client, url := startExchange(t, httpx.Config{MaxBody: tc.limit}, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, strings.Repeat("x", tc.size))
		})
		resp, err := getURL(t, client, url)
		require.NoError(t, err)
		data, err := io.ReadAll(resp.Body)
		httpx.Drain(resp.Body)
		if !tc.tooLong {
			require.NoError(t, err)
			require.Len(t, data, tc.size)
			continue
		}
		var tooLarge *httpx.TooLargeError
		require.ErrorAs(t, err, &tooLarge)
		require.EqualValues(t, len(data), tooLarge.Limit)
	}
}

func TestAClientNamesItself(t *testing.T) {
	t.Parallel()
	client, url := startExchange(t, httpx.Config{UserAgent: "forewarm-agent/1"},
		func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, r.UserAgent())
		})
	for sent, want := range map[string]string{"": "forewarm-agent/1", "mine": "mine"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		require.NoError(t, err)
		if sent != "" {
			req.Header.Set("User-Agent", sent)
		}
		resp, err := client.Do(req)
		require.NoError(t, err)
		data, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, want, string(data))
		require.Equal(t, sent, req.Header.Get("User-Agent"), "the caller's request must stay as it was")
	}
}

func TestARedirectIsAnAnswer(t *testing.T) {
	t.Parallel()
	client, url := startExchange(t, httpx.Config{}, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	})
	resp, err := getURL(t, client, url)
	require.NoError(t, err)
	httpx.Drain(resp.Body)
	require.Equal(t, http.StatusTemporaryRedirect, resp.StatusCode)
	require.Equal(t, "/elsewhere", resp.Header.Get("Location"))
}

func TestASlowServerTimesOut(t *testing.T) {
	t.Parallel()
	client, url := startExchange(t, httpx.Config{Timeout: 50 * time.Millisecond},
		func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
		})
	resp, err := getURL(t, client, url+"/path?token=hunter2")
	if err == nil {
		httpx.Drain(resp.Body)
	}
	require.ErrorIs(t, err, context.DeadlineExceeded)

	hidden := httpx.HideURL(err)
	require.ErrorIs(t, hidden, context.DeadlineExceeded)
	require.NotContains(t, hidden.Error(), "hunter2")
	require.NotContains(t, hidden.Error(), "/path")
	require.Contains(t, hidden.Error(), strings.TrimPrefix(url, "http://"))
}

func TestHideURLLeavesOtherErrors(t *testing.T) {
	t.Parallel()
	other := errors.New("other")
	require.Equal(t, other, httpx.HideURL(other))
	require.NoError(t, httpx.HideURL(nil))
}

func TestAServerRefusesLongHeaders(t *testing.T) {
	t.Parallel()
	client, url := startExchange(t, httpx.Config{}, func(w http.ResponseWriter,
		_ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	})
	for size, want := range map[int]int{8 << 10: http.StatusNoContent,
		32 << 10: http.StatusRequestHeaderFieldsTooLarge} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		require.NoError(t, err)
		req.Header.Set("X-Long", strings.Repeat("x", size))
		resp, err := client.Do(req)
		require.NoError(t, err)
		httpx.Drain(resp.Body)
		require.Equal(t, want, resp.StatusCode)
	}
}
