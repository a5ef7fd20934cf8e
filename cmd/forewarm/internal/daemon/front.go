package daemon

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/httpx"
	"github.com/forewarm/forewarm/server/problem"
)

// front answers on an address from the first moment: while its process waits for
// what it needs, that it lives and what is missing; then as the real handler.
type front struct {
	missing atomic.Pointer[string]
	handler atomic.Pointer[http.Handler]
}

func newFront() *front {
	f := &front{}
	f.setMissing("its own start")
	return f
}

// setMissing remembers what is waited for.
func (f *front) setMissing(what string) { f.missing.Store(&what) }

// setHandler has h answer from now on.
func (f *front) setHandler(h http.Handler) { f.handler.Store(&h) }

// ServeHTTP implements http.Handler.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h := f.handler.Load(); h != nil {
		(*h).ServeHTTP(w, r)
		return
	}
	if r.Body != nil && r.Body != http.NoBody { // which nobody reads but net/http, to its end
		w.Header().Set("Connection", "close")
		_ = http.NewResponseController(w).SetReadDeadline(
			time.Now().Add(httpx.ShortReadTimeout)) // a recorder of tests has none
	}
	missing := "starting: waiting for " + *f.missing.Load()
	switch r.URL.Path {
	case "/healthz":
		_, _ = fmt.Fprintln(w, "ok")
	case "/readyz":
		w.Header().Set("Retry-After", "1")
		http.Error(w, missing, http.StatusServiceUnavailable)
	default:
		w.Header().Set("Retry-After", "1")
		problem.New(contract.CodeUnavailable, missing).Write(w)
	}
}
