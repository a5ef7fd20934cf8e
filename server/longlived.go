package server

import (
	"fmt"
	"net/http"
	"sync"

	"github.com/gin-gonic/gin"

	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/server/auth"
)

// StreamLimits bound the requests that stay open by design: streams of events,
// and those that wait for their outcome. Zero: no bound.
type StreamLimits struct {
	PerKey          int
	PerOrganization int
	All             int // of everybody, so that there is always room for other requests
}

// longLived counts open streams and waits.
type longLived struct {
	limits StreamLimits

	mu     sync.Mutex
	all    int
	keys   map[string]int
	tenant map[string]int // by organization
}

func newLongLived(limits StreamLimits) *longLived {
	return &longLived{limits: limits, keys: map[string]int{}, tenant: map[string]int{}}
}

// admitActor counts one more, or says whose bound is reached.
func (l *longLived) admitActor(a ledger.Actor) (refused string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range []struct {
		open, most int
		whose, key string
	}{
		{l.keys[a.KeyID], l.limits.PerKey, "this key", "server.max_streams_per_key"},
		{l.tenant[a.OrganizationID], l.limits.PerOrganization, "this organization",
			"server.max_streams_per_organization"},
		{l.all, l.limits.All, "all clients of this server together", "server.max_connections"},
	} {
		if b.most > 0 && b.open >= b.most {
			return fmt.Sprintf("%d event streams and waiting requests of %s are open, which is the most (%s).", b.open,
				b.whose, b.key)
		}
	}
	l.all++
	l.keys[a.KeyID]++
	l.tenant[a.OrganizationID]++
	return ""
}

func (l *longLived) releaseActor(a ledger.Actor) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all--
	decrement(l.keys, a.KeyID)
	decrement(l.tenant, a.OrganizationID)
}

// decrement takes one from a count.
func decrement(counts map[string]int, key string) {
	if counts[key]--; counts[key] == 0 {
		delete(counts, key)
	}
}

// countLongLived bounds how many streams and waits are open, so that no key and no
// organization takes the connections of all others.
func (s *Server) countLongLived(c *gin.Context) {
	x := exchangeOf(c)
	stream := x.route.Streams && (c.Request.Method == http.MethodGet || x.route.rpc)
	if x.route.Policy.Public || !stream && x.wait == 0 { // whom nobody knows is counted by address, where it matters
		return
	}
	actor := auth.From(c.Request.Context())
	if refused := s.long.admitActor(actor); refused != "" {
		abortWith(c, slowDown(refused,
			retryStreams).Request("Close one of them, follow one stream for all, or ask without Prefer: wait"))
		return
	}
	defer s.long.releaseActor(actor)
	c.Next()
}
