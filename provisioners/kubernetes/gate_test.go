//go:build clouds

package kubernetes_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/provisioners/kubernetes"
)

// gate is another process's adapter, whose first request of one kind is held up
// on its way to the API server.
type gate struct {
	*kubernetes.Cluster
	arrived, leave chan struct{}
}

func newGate(t *testing.T, w *world, method, path string) *gate {
	t.Helper()
	server := httptest.NewServer(w.server)
	t.Cleanup(server.Close)
	target, err := url.Parse(server.URL)
	require.NoError(t, err)
	g := &gate{arrived: make(chan struct{}), leave: make(chan struct{})}
	forward := httputil.NewSingleHostReverseProxy(target)
	var once sync.Once
	proxy := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Method == method && strings.HasSuffix(r.URL.Path, path) {
			once.Do(func() {
				close(g.arrived)
				<-g.leave
			})
		}
		forward.ServeHTTP(rw, r)
	}))
	t.Cleanup(proxy.Close)
	config := w.config
	config.Kubeconfig = writeKubeconfig(t, proxy.URL)
	g.Cluster, err = kubernetes.New(config, w.clock)
	require.NoError(t, err)
	return g
}

func (g *gate) awaitCaller() { <-g.arrived }

func (g *gate) letPass() { close(g.leave) }
