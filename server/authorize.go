package server

import (
	"context"
	"errors"
	"math"
	"net/http"
	"net/netip"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/httpx"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/inward"
	"github.com/forewarm/forewarm/server/problem"
)

// limiters count requests.
type limiters struct {
	reads, writes, agents, failures, organizations, node, nodes *auth.Limiter
}

func newLimiters(cfg Config) limiters {
	limit := func(r auth.Rate) *auth.Limiter { return auth.NewLimiter(r, cfg.Clock) }
	l := cfg.Limits
	return limiters{limit(l.Reads), limit(l.Writes), limit(l.Agents), limit(l.Failures), limit(l.OrganizationWrites),
		limit(l.Node), limit(l.Nodes)}
}

// authorizeRoute lets a request on to its route, or answers why not.
func (s *Server) authorizeRoute(c *gin.Context) {
	if c.FullPath() == "" {
		return // there is no route: NoRoute and NoMethod say so
	}
	switch row := exchangeOf(c).route; {
	case !row.known:
		abortWith(c, problem.New(contract.CodePermissionDenied, "This route has no policy, so it answers nobody."))
	case inward.Inside(c.Request.Context()):
		admitAgain(c, row.Policy)
	case !row.Policy.Public:
		s.admitKey(c, row.Policy)
	}
}

func (s *Server) admitKey(c *gin.Context, policy auth.Policy) {
	from := exchangeOf(c).from
	actor, err := s.proveKey(c.Request, from)
	if err != nil {
		s.refuseKey(c, from, err)
		return
	}
	httpx.Proved(c.Request.Context())
	c.Request = c.Request.WithContext(auth.With(c.Request.Context(), actor))
	if ok, after := s.limiterOf(actor, isRead(c)).Allow(boundedAs(actor)); !ok {
		abortWith(c, slowDown("This key sends more requests than it may.", after))
		return
	}
	if err := policy.AllowNode(actor, nodeAsked(c, actor)); err != nil {
		p, _ := problem.From(err)
		abortWith(c, p)
		return
	}
	if ok, after := s.organizationWrites(actor, isRead(c)); !ok {
		abortWith(c, slowDown("The keys of this organization, or the nodes, together write more often than they may.", after))
	}
}

// admitAgain lets on whoever was let in with a request of which this one is a part, and was
// counted with it.
func admitAgain(c *gin.Context, policy auth.Policy) {
	if err := policy.Allow(auth.From(c.Request.Context())); err != nil {
		p, _ := problem.From(err)
		abortWith(c, p)
	}
}

// nodeAsked is the node that a request is about: the path's, or, where the path has none, the
// one whose key it has.
func nodeAsked(c *gin.Context, actor ledger.Actor) string {
	if id, named := c.Params.Get("id"); named {
		return id
	}
	return actor.NodeID
}

// boundedAs is whose requests are bounded together: those of a key, or of a node, whose daemon
// renews its key as often as it likes.
func boundedAs(a ledger.Actor) string {
	if a.NodeID != "" {
		return a.NodeID
	}
	return a.KeyID
}

// proveKey finds out who sends the request. The store is asked, within bounds, only
// for a key that was not proved just now.
func (s *Server) proveKey(r *http.Request, from netip.Addr) (ledger.Actor, error) {
	if actor, ok := s.auth.Recall(r); ok {
		return actor, nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.cfg.Timeouts.Answer)
	defer cancel()
	return s.auth.Request(r.WithContext(ctx), from)
}

// refuseKey answers who could not be let in. A wrong key is counted by its prefix
// and address together: no other key, and no right one, pays for it.
func (s *Server) refuseKey(c *gin.Context, from netip.Addr, err error) {
	if wrong, ok := errors.AsType[*auth.WrongKeyError](err); ok {
		s.failures.Note("api", wrong.Prefix, from)
		if ok, after := s.limits.failures.Allow(wrong.Prefix + " " + httpx.Network(from).String()); !ok {
			abortWith(c, slowDown("This key is wrong and was sent too often from this address.", after))
			return
		}
	}
	p, told := problem.From(err)
	switch {
	case told:
	case errors.Is(err, ledger.ErrUnavailable): // nobody is attacking; /readyz and the answer's line tell of it too
		s.cfg.Logger.DebugContext(c.Request.Context(), "a key could not be looked up", "error", err)
	default:
		s.cfg.Logger.ErrorContext(c.Request.Context(), "looking up a key failed", "error", err)
	}
	abortWith(c, p)
}

func (s *Server) limiterOf(a ledger.Actor, reads bool) *auth.Limiter {
	switch {
	case a.Kind == ledger.AgentKey:
		return s.limits.agents
	case reads:
		return s.limits.reads
	case a.NodeID != "":
		return s.limits.node
	default:
		return s.limits.writes
	}
}

// organizationWrites bounds what the keys of an organization write together: who
// makes more keys may not write more.
func (s *Server) organizationWrites(a ledger.Actor, reads bool) (bool, time.Duration) {
	if reads {
		return true, 0
	}
	if a.NodeID != "" { // daemons belong to no organization, and all come at once after a restart
		return s.limits.nodes.Allow("")
	}
	return s.limits.organizations.Allow(a.OrganizationID)
}

func isRead(c *gin.Context) bool {
	method := c.Request.Method
	return method == http.MethodGet || method == http.MethodHead || exchangeOf(c).route.reads
}

func slowDown(detail string, after time.Duration) *problem.Problem {
	p := problem.New(contract.CodeRateLimited, detail)
	p.RetryAfter = max(1, int(math.Ceil(after.Seconds())))
	return p.Request("Wait as long as Retry-After says")
}
