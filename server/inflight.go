package server

import (
	"net/netip"
	"sync"

	"github.com/gin-gonic/gin"

	"github.com/forewarm/forewarm/internal/httpx"
	"github.com/forewarm/forewarm/server/inward"
)

// inFlight counts the requests that are open for each network: those behind a proxy of
// ours, since the listener, which counts connections, sees only the proxy; and downloads.
type inFlight struct {
	most int // of one network; zero: any number

	mu   sync.Mutex
	open map[netip.Prefix]int
}

func (f *inFlight) admitRequest(from netip.Prefix) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.most > 0 && f.open[from] >= f.most {
		return false
	}
	f.open[from]++
	return true
}

func (f *inFlight) releaseRequest(from netip.Prefix) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open[from]--; f.open[from] == 0 {
		delete(f.open, from)
	}
}

// countOpen bounds how many requests one client has open through a proxy.
func (s *Server) countOpen(c *gin.Context) {
	if inward.Inside(c.Request.Context()) || !s.cfg.Proxies.Brought(c.Request) {
		return
	}
	from := httpx.Network(exchangeOf(c).from)
	if !s.open.admitRequest(from) {
		abortWith(c, slowDown("Too many requests from this address are open.", 0))
		return
	}
	defer s.open.releaseRequest(from)
	c.Next()
}
