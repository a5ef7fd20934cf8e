package main

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/client"
)

// TestRunWaitsForTheControlPlane: an agent that names its pool comes up before
// the server does.
func TestRunWaitsForTheControlPlane(t *testing.T) {
	t.Parallel()
	w := newHome(t)
	served, err := url.Parse(w.url)
	require.NoError(t, err)
	asked := 0
	proxy := httputil.NewSingleHostReverseProxy(served)
	slow := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if asked++; asked == 1 {
			http.Error(rw, "coming up", http.StatusBadGateway)
			return
		}
		proxy.ServeHTTP(rw, r)
	}))
	t.Cleanup(slow.Close)
	for patient, found := range map[bool]bool{true: true, false: false} {
		asked = 0
		c, err := client.New(slow.URL, w.key, slow.Client())
		require.NoError(t, err)
		id, err := composer{cfg: config{Pool: "lab"}, logger: slog.New(slog.DiscardHandler),
			patient: patient}.findPool(t.Context(), c)
		require.Equal(t, found, err == nil)
		require.Equal(t, found, strings.HasPrefix(id, "pol_"))
	}
	c, err := client.New(slow.URL, w.key, slow.Client())
	require.NoError(t, err)
	_, err = composer{cfg: config{Pool: "nowhere"}, logger: slog.New(slog.DiscardHandler),
		patient: true}.findPool(t.Context(), c)
	require.ErrorAs(t, err, new(*client.Error), "what is answered is not waited for")
}
