// Package server answers HTTP: the API under /v1, its description and a page for
// people, health and metrics.
//
// Every request passes the same middleware, in this order: the connection's deadlines, a
// request id and an access log without secrets, recovery, security headers, the
// host name, the requests that its client has open, the form of path, query and
// headers, the route's policy (a route without one answers nobody) with key and
// rate limit, the streams and waits that it has open, the size, pace and form of the body, and a
// deadline for the answer. Behind it, package api translates and the ledger decides.
package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"runtime"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/httpx"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/internal/keys"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
	"github.com/forewarm/forewarm/server/api"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/events"
	"github.com/forewarm/forewarm/server/page"
	"github.com/forewarm/forewarm/server/peers"
	"github.com/forewarm/forewarm/server/sessions"
	"github.com/forewarm/forewarm/server/telemetry"
)

// Config is what a server works with. Ledger and Peppers are required; the rest
// has defaults.
type Config struct {
	Ledger *verbs.Ledger
	Clock  clock.Clock         // nil: the machine's
	Logger *slog.Logger        // nil: none
	IDs    ids.Source          // of requests; nil: random
	Random io.Reader           // of keys and sessions; nil: crypto/rand
	Metric *obs.Metrics        // nil: none are recorded
	Gather prometheus.Gatherer // what /metrics shows; nil: nothing

	// Peppers verify API keys; the first also hashes new ones.
	Peppers []keys.Pepper
	// Environment is part of every new key; empty means live.
	Environment string
	// KeyLife is how long a person's key works that is made without a word of its
	// end; 0 means DefaultKeyLife.
	KeyLife time.Duration
	// Version of the program.
	Version string
	// Simulation marks an installation without real machines.
	Simulation bool

	// Hosts are the names under which the server may be called, besides
	// localhost and plain addresses; "*" allows every name. The check keeps a
	// web page of others from reaching it through a name of theirs.
	Hosts []string
	// OpenMetrics shows /metrics without a key.
	OpenMetrics bool
	// OpenPage shows the page at / without a sign-in. Only for a demo that
	// listens on the loopback interface.
	OpenPage bool
	// SignInToken opens the page once, within ten minutes of New, with an
	// operator's eyes. Empty: there is no such link.
	SignInToken obs.Secret
	// Proxies are believed about the addresses of their clients, and whether those
	// speak TLS. Zero: nobody is.
	Proxies httpx.Proxies
	// PublicURL is where others reach the API; empty: nobody has said.
	PublicURL string
	// PublicTLS says that everybody comes by TLS, whatever this process sees.
	PublicTLS bool
	// OpenPerAddress bounds the requests that one address has open through a
	// proxy; zero: no bound.
	OpenPerAddress int
	// Peers is this server among others of the installation; nil: it is alone. Only
	// Peers, ID, Listener and Address are read.
	Peers *peers.Config
	// Streams bound the requests that stay open by design. Zero fields: no bound.
	Streams StreamLimits
	// Downloads are the programs that GET /download/ hands out to anybody: the paths of
	// their files, by name. They are opened for each request.
	Downloads map[string]string
	// NewDaemon is how long after the start of an allocation the daemon of its node may take
	// until sessions are refused without it.
	NewDaemon time.Duration
	// Compat serves the routes of older schedulers, too; see package compat.
	Compat   bool
	Limits   Limits
	Timeouts Timeouts
}

// DefaultKeyLife is how long a person's key works unless its maker or the
// installation says otherwise.
const DefaultKeyLife = 90 * 24 * time.Hour

// Limits are how often requests are answered. A zero rate gets the default; a
// negative one does not limit.
type Limits struct {
	Reads  auth.Rate // per key; default 50 a second, bursts of 200
	Writes auth.Rate // per key; default 20 a second, bursts of 100
	// OrganizationWrites are those of all keys of an organization together, whatever
	// their kind; default 200 a second, bursts of 500.
	OrganizationWrites auth.Rate
	Agents             auth.Rate // per agent's key; default 2 a second, bursts of 30
	// Failures are those of one wrong key from one address, at the API and at the page
	// apart; default one in 5 s, bursts of 20.
	Failures auth.Rate
	Links    auth.Rate // wrong sign-in links per address; default one in 5 s, bursts of 20
	// Node are those of one node's daemon, which sends at most 40 a second; default 50 a second, bursts of 200.
	Node   auth.Rate
	Nodes  auth.Rate // of the daemons of all nodes together; default 1,000 a second, bursts of 2,000
	Logins auth.Rate // sessions begun per key; default one in 10 s, bursts of 10
}

func (l Limits) withDefaults() Limits {
	def := func(r *auth.Rate, perSecond float64, burst int) {
		if *r == (auth.Rate{}) {
			*r = auth.Rate{PerSecond: perSecond, Burst: burst}
		}
	}
	def(&l.Reads, 50, 200)
	def(&l.Writes, 20, 100)
	def(&l.OrganizationWrites, 200, 500)
	def(&l.Agents, 2, 30)
	def(&l.Node, 50, 200)
	def(&l.Nodes, 1000, 2000)
	def(&l.Failures, 0.2, 20)
	def(&l.Links, 0.2, 20)
	def(&l.Logins, 0.1, 10)
	return l
}

func (c Config) withDefaults() Config {
	if c.Clock == nil {
		c.Clock = clock.System{}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.IDs == nil {
		c.IDs = ids.UUID{}
	}
	if c.Random == nil {
		c.Random = rand.Reader
	}
	if c.Gather == nil {
		c.Gather = prometheus.NewRegistry()
	}
	if c.Environment == "" {
		c.Environment = "live"
	}
	c.KeyLife = cmp.Or(c.KeyLife, DefaultKeyLife)
	c.Limits = c.Limits.withDefaults()
	c.Timeouts = c.Timeouts.withDefaults()
	return c
}

// Server answers requests. It is safe for concurrent use.
type Server struct {
	cfg    Config
	engine *gin.Engine
	doc    *huma.OpenAPI
	// byRoute says what each route demands.
	byRoute routes
	feed    *events.Feed
	api     *api.API
	peers   *peers.Group // nil: there are none
	auth    *auth.Authenticator
	limits  limiters
	open    inFlight
	// downloads are those of each network that are open.
	downloads inFlight
	long      *longLived

	failures *auth.Failures

	telemetry *telemetry.Hub
	sessions  *sessions.Hub
	readiness *Readiness
	watches   *healthWatches
}

// New returns a server that has not begun to notice events: Run does that.
func New(cfg Config) (*Server, error) {
	if cfg.Ledger == nil || len(cfg.Peppers) == 0 {
		return nil, errors.New("a server needs a ledger and a pepper")
	}
	cfg = cfg.withDefaults()
	s := &Server{
		cfg: cfg, engine: newEngine(), feed: events.NewFeed(cfg.Ledger.Store(), cfg.Logger),
		auth: auth.New(cfg.Ledger, cfg.Clock, cfg.Peppers), limits: newLimiters(cfg),
		telemetry: telemetry.NewHub(cfg.Ledger, cfg.Clock),
		sessions:  sessions.NewHub(cfg.Ledger, cfg.Logger, cfg.Metric),
		long:      newLongLived(cfg.Streams),
		open:      inFlight{most: cfg.OpenPerAddress, open: map[netip.Prefix]int{}}, failures: auth.NewFailures(cfg.Clock),
		watches:   newHealthWatches(),
		downloads: inFlight{most: mostDownloads, open: map[netip.Prefix]int{}},
		readiness: &Readiness{Store: cfg.Ledger.Store(), Clock: cfg.Clock, Logger: cfg.Logger, Metric: cfg.Metric},
	}
	if err := s.engine.SetTrustedProxies(nil); err != nil { // ours are asked, not gin's
		return nil, err
	}
	if err := s.joinPeers(); err != nil {
		return nil, err
	}
	s.registerRoutes()
	return s, nil
}

// joinPeers prepares to have one of several servers decide for all.
func (s *Server) joinPeers() (err error) {
	if s.cfg.Peers == nil {
		return nil
	}
	cfg := *s.cfg.Peers
	cfg.Clock, cfg.Logger, cfg.Metric = s.cfg.Clock, s.cfg.Logger, s.cfg.Metric
	cfg.Peppers, cfg.Version = s.cfg.Peppers, s.cfg.Version
	s.peers, err = peers.New(cfg, func(ctx context.Context, c *peers.Call) peers.Reply { return s.api.Answer(ctx, c) })
	if err == nil {
		s.peers.OnSession(s.sessions.ServeRelayed)
		s.sessions.UseRelay(sessions.NewRelay(s.peers))
	}
	return err
}

// release keeps gin from printing its routes. It is a setting of the process.
var release = sync.OnceFunc(func() { gin.SetMode(gin.ReleaseMode) })

func newEngine() *gin.Engine {
	release()
	return gin.New()
}

func (s *Server) registerRoutes() {
	e := s.engine
	e.HandleMethodNotAllowed = true
	e.UseRawPath, e.RedirectTrailingSlash = true, false
	e.Use(s.guardConnection, s.logRequest, s.recoverPanic, s.securityHeaders, s.checkHost, s.countOpen, s.checkText,
		s.authorizeRoute, s.countLongLived, s.checkBody, s.boundAnswer)
	a, doc, operations := api.Register(e, api.Config{
		Ledger: s.cfg.Ledger, Peers: s.peers, Clock: s.cfg.Clock, Log: s.cfg.Logger, Feed: s.feed, Auth: s.auth,
		Telemetry: s.telemetry, Sessions: s.sessions, NewDaemon: s.cfg.NewDaemon,
		Minter:  auth.Minter{Environment: s.cfg.Environment, Pepper: s.cfg.Peppers[0], Random: s.cfg.Random},
		KeyLife: s.cfg.KeyLife, PublicURL: s.cfg.PublicURL, External: systemOperations(),
		Build: contract.Build{Version: s.cfg.Version, Contract: contract.Version, GoVersion: runtime.Version(),
			Simulation: s.cfg.Simulation},
	})
	s.api, s.doc, s.byRoute = a, doc, newRoutes(operations, s.cfg.OpenMetrics)
	s.registerSystem()
	s.registerNodeService()
	s.registerRPCs()
	if s.cfg.Compat {
		s.registerCompat()
	}
	page.Register(e, page.Config{
		Ledger: s.cfg.Ledger, Clock: s.cfg.Clock, Log: s.cfg.Logger, Feed: s.feed, Auth: s.auth, Random: s.cfg.Random,
		Open: s.cfg.OpenPage, Token: s.cfg.SignInToken, Version: s.cfg.Version,
		Proxies: s.cfg.Proxies, Secure: s.speaksTLS, Failed: s.failures.Note, Limits: page.Limits{
			Keys:   auth.NewLimiter(s.cfg.Limits.Failures, s.cfg.Clock),
			Links:  auth.NewLimiter(s.cfg.Limits.Links, s.cfg.Clock),
			Logins: auth.NewLimiter(s.cfg.Limits.Logins, s.cfg.Clock),
		},
	})
	answerHead(e)
	e.NoRoute(notFound)
	e.NoMethod(methodNotAllowed)
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.engine.ServeHTTP(w, r) }

const (
	noticeEvery = 250 * time.Millisecond // an event reaches those who follow so soon after its commit
	flushEvery  = time.Minute            // failed sign-ins reach the journal
	// retryStreams is when to ask again for one more stream.
	retryStreams = 5 * time.Second
	watchEvery   = time.Minute // the journal's seals are compared with the newest that was seen
)

// Run notices events, writes down failed sign-ins, looks after the journal's seals,
// and answers other servers, until the context ends, and then ends all streams.
// Without it, streams and waiting requests stay silent, and this server decides for
// itself; everything else works.
func (s *Server) Run(ctx context.Context) error {
	var wait sync.WaitGroup
	wait.Go(func() { s.flushFailures(ctx) })
	wait.Go(func() { s.watchSeals(ctx) })
	wait.Go(func() { s.askForOrders(ctx) })
	wait.Go(func() { s.watches.Run(ctx, s.readiness) })
	wait.Go(func() {
		<-ctx.Done()
		s.sessions.Leave()
	})
	var answered error
	if s.peers != nil {
		wait.Go(func() { answered = s.peers.Run(ctx) })
	}
	s.feed.Run(ctx, noticeEvery)
	wait.Wait()
	return answered
}

// flushFailures flushes every minute, and when the context has ended.
func (s *Server) flushFailures(ctx context.Context) {
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for ended := false; !ended; {
		select {
		case <-ctx.Done():
			ended = true
		case <-tick.C:
		}
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.Timeouts.Answer)
		if err := s.failures.Flush(bounded, s.cfg.Ledger); err != nil {
			s.cfg.Logger.WarnContext(ctx, "writing down failed sign-ins failed", "error", err)
		}
		cancel()
	}
}

// watchSeals looks after the journal's seals, now and every minute.
func (s *Server) watchSeals(ctx context.Context) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		bounded, cancel := context.WithTimeout(ctx, s.cfg.Timeouts.Answer)
		s.watchSealsOnce(bounded)
		cancel()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// watchSealsOnce notices that seals of the journal are gone that this server has seen.
func (s *Server) watchSealsOnce(ctx context.Context) {
	err := s.cfg.Ledger.WatchSeals(ctx)
	var behind *ledger.JournalBehindError
	s.cfg.Metric.SealsBehind(errors.As(err, &behind))
	if err != nil && ctx.Err() == nil {
		s.cfg.Logger.ErrorContext(ctx,
			"the journal may not be what it was; if its database was restored from a backup, say so with "+
				"`forewarm recovery confirm --journal`", "error", err)
	}
}

// Step notices events, writes down failed sign-ins, has those look who watch its health, and looks after the
// journal's seals once, as Run does again and again.
func (s *Server) Step(ctx context.Context) error {
	s.watches.look()
	s.watchSealsOnce(ctx)
	if err := s.failures.Flush(ctx, s.cfg.Ledger); err != nil {
		return fmt.Errorf("writing down failed sign-ins: %w", err)
	}
	return s.feed.Step(ctx)
}
