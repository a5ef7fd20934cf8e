// Package peers has one server decide what all are asked to change.
//
// Servers that decide in the same pool at the same time wait for each other's
// commits, and share them with nobody. So each sends what it is asked to the one that has
// been there longest, over a connection that it keeps open, and that one decides
// it together with what it is asked itself. Everything else, from TLS to the key and
// the form of the body, is done where the request came.
//
// Nothing rests on who decides. Two servers that decide at the same time are only
// slower: the locks of their transactions keep them apart. So nobody is elected, a
// server that is out of reach is done without at once, and a request whose reply was lost is
// decided again under its idempotency key.
package peers

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/keys"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/ledger"
)

// How often a server says that it is there, and how long it is believed.
const (
	attendEvery = time.Second
	attendLife  = 5 * time.Second
	// A server that cannot be reached, or whose connection broke, is passed over for
	// shunFirst, and twice as long each time that this happens again soon, up to
	// shunMost: else all would turn to it every few seconds.
	shunFirst = 5 * time.Second
	shunMost  = 2 * time.Minute
	// aloneFor is after how many looks at the list a server that is to decide warns
	// that none of the others has connected to it.
	aloneFor = 15
)

// Errors of Ask.
var (
	// ErrNobody says that nobody else is to be asked: nothing was sent.
	ErrNobody = errors.New("nobody else decides")
	// ErrLost says that no reply came: it may have been done.
	ErrLost = errors.New("no reply of the server that decides")
)

// Config is what a Group works with. All but Metric are required.
type Config struct {
	Peers    ledger.Peers
	Clock    clock.Clock
	Logger   *slog.Logger
	Metric   *obs.Metrics // nil: none are recorded
	ID       string       // of this process
	Listener net.Listener // for other servers; Run closes it
	Address  string       // of the listener, as others reach it
	// Peppers prove one server to another.
	Peppers []keys.Pepper
	Version string // of the program
}

// Answerer decides a call here. It is called concurrently.
type Answerer func(ctx context.Context, c *Call) Reply

// Group is this server among the others. It is safe for concurrent use. A nil *Group
// is alone.
type Group struct {
	cfg      Config
	answer   Answerer
	security *tls.Config
	// serveSession serves a session that another server carries here; nil: none is.
	serveSession func(context.Context, net.Conn)
	link         atomic.Pointer[link] // to who decides; nil: this server does
	broke        chan struct{}        // holds something when the link has broken

	serving   atomic.Int32 // connections of others
	sessions  atomic.Int32 // of them those that carry a session each
	strangers strangers

	mu   sync.Mutex
	shun map[string]shunned // servers that could not be reached
	all  []ledger.Peer      // the servers that were there at the last look

	// Only Attend uses these, for the log.
	decides ledger.Peer // whom this server asks; itself: it decides
	alone   int         // looks at the list in a row at which others were there and none connected
}

// shunned is a server that is passed over.
type shunned struct {
	until time.Time
	pause time.Duration
}

// New returns a group that asks and answers nobody until Run.
func New(cfg Config, answer Answerer) (*Group, error) {
	security, err := secureConnections(cfg.Peppers, cfg.Version, cfg.Clock.Now())
	if err != nil {
		return nil, err
	}
	return &Group{cfg: cfg, answer: answer, security: security, broke: make(chan struct{}, 1),
		shun: map[string]shunned{}}, nil
}

// IsFollower reports whether another server is to be asked now.
func (g *Group) IsFollower() bool { return g != nil && g.link.Load() != nil }

// Ask has another server decide a call, if one is to: ErrNobody, ErrLost.
func (g *Group) Ask(ctx context.Context, c *Call) (Reply, error) {
	if g == nil {
		return Reply{}, ErrNobody
	}
	l := g.link.Load()
	if l == nil {
		return Reply{}, ErrNobody
	}
	p, err := l.ask(ctx, c)
	switch {
	case err == nil:
		g.cfg.Metric.Forwarded(obs.ForwardAnswered)
	case errors.Is(err, ErrLost):
		g.cfg.Metric.Forwarded(obs.ForwardLost)
	}
	return p, err
}

// Run answers others and keeps a connection to who decides, until the context ends.
// Then it says that this server is gone, and finishes what others asked.
func (g *Group) Run(ctx context.Context) error {
	var wait sync.WaitGroup
	defer wait.Wait()
	var served error
	wait.Go(func() { served = g.serveOthers(ctx) })
	g.checkOwnAddress(ctx)
	tick := time.NewTicker(attendEvery)
	defer tick.Stop()
	for {
		g.Attend(ctx)
		select {
		case <-ctx.Done():
			g.Leave(ctx)
			wait.Wait()
			return served
		case <-tick.C:
		case <-g.broke:
		}
	}
}

// Attend says once that this server is there, and connects to who decides, as Run does
// again and again.
func (g *Group) Attend(ctx context.Context) {
	bounded, cancel := context.WithTimeout(ctx, attendLife/2)
	defer cancel()
	all, err := g.cfg.Peers.Attend(bounded, ledger.Peer{ID: g.cfg.ID, Address: g.cfg.Address}, attendLife)
	if err != nil {
		if ctx.Err() == nil { // the connection is as good as before
			g.cfg.Logger.DebugContext(ctx, "saying that this server is there failed", "error", err)
		}
		return
	}
	g.mu.Lock()
	g.all = all
	g.mu.Unlock()
	first := g.firstReachable(all)
	if err := g.follow(ctx, first); err != nil && ctx.Err() == nil {
		g.cfg.Logger.WarnContext(ctx, "the server that decides cannot be reached, so this one decides what it is asked, "+
			"which is slower; look at server.peers_listen and server.peers_address of that one, and at firewalls",
			"server", first.ID, "error", err)
	}
	g.noteDecider(ctx)
	g.noteAlone(ctx, first, len(all))
}

// firstReachable is who decides: whoever has been there longest, but for those who
// could not be reached lately. It is this server if there is nobody else.
func (g *Group) firstReachable(all []ledger.Peer) ledger.Peer {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.cfg.Clock.Now()
	for _, p := range all {
		if p.ID == g.cfg.ID || now.After(g.shun[p.ID].until) {
			return p
		}
	}
	return ledger.Peer{ID: g.cfg.ID}
}

// follow connects to who decides, unless it is this server.
func (g *Group) follow(ctx context.Context, first ledger.Peer) error {
	old := g.link.Load()
	if old != nil && old.to == first {
		return nil
	}
	var next *link
	if first.ID != g.cfg.ID {
		var err error
		if next, err = dialPeer(ctx, first, g.security, g.lose); err != nil {
			g.pass(first.ID) // whoever was asked until now still is
			return err
		}
	}
	if old = g.link.Swap(next); old != nil {
		old.retire()
	}
	if next != nil && next.isLeaving() { // it broke before it was stored
		g.lose(next)
	}
	return nil
}

// noteDecider tells the log when another server decides, and the metrics whether this
// one does.
func (g *Group) noteDecider(ctx context.Context) {
	decider := ledger.Peer{ID: g.cfg.ID}
	if l := g.link.Load(); l != nil {
		decider = l.to
	}
	g.cfg.Metric.Leads(decider.ID == g.cfg.ID)
	if g.decides == decider {
		return
	}
	g.decides = decider
	if decider.ID == g.cfg.ID {
		g.cfg.Logger.InfoContext(ctx, "this server decides what it is asked, and what others forward to it")
		return
	}
	g.cfg.Logger.InfoContext(ctx, "another server decides", "server", decider.ID, "address", decider.Address)
}

// noteAlone warns of what this server alone cannot see: that others know of it and do
// not reach it.
func (g *Group) noteAlone(ctx context.Context, first ledger.Peer, servers int) {
	if first.ID != g.cfg.ID || servers < 2 || g.serving.Load() > 0 {
		g.alone = 0
		return
	}
	if g.alone++; g.alone == aloneFor {
		g.cfg.Logger.WarnContext(ctx, "other servers are there, and none has connected to this one: look at "+
			"server.peers_listen and server.peers_address, and at firewalls", "address", g.cfg.Address)
	}
}

// lose is told that a link takes no more calls. If it was in use, somebody else is
// looked for at once.
func (g *Group) lose(l *link) {
	if !g.link.CompareAndSwap(l, nil) {
		return
	}
	g.pass(l.to.ID)
	select {
	case g.broke <- struct{}{}:
	default:
	}
}

// pass has a server passed over for a while.
func (g *Group) pass(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.cfg.Clock.Now()
	for other, s := range g.shun {
		if now.After(s.until.Add(shunMost)) {
			delete(g.shun, other)
		}
	}
	pause := shunFirst
	if before, lately := g.shun[id]; lately {
		pause = min(2*before.pause, shunMost)
	}
	g.shun[id] = shunned{until: now.Add(pause), pause: pause}
}

// checkOwnAddress warns when others will not reach this server, before it is its turn to
// decide.
func (g *Group) checkOwnAddress(ctx context.Context) {
	l, err := dialPeer(ctx, ledger.Peer{ID: g.cfg.ID, Address: g.cfg.Address}, g.security, func(*link) {})
	if err == nil {
		l.close()
		return
	}
	if ctx.Err() == nil {
		g.cfg.Logger.WarnContext(ctx, "this server does not reach itself where other servers are to reach it: look at "+
			"server.peers_listen and server.peers_address", "address", g.cfg.Address, "error", err)
	}
}

// Leave says that this server is gone, so that the others ask somebody else. Run ends
// with it.
func (g *Group) Leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), attendLife/2)
	defer cancel()
	if err := g.cfg.Peers.Leave(ctx, g.cfg.ID); err != nil {
		g.cfg.Logger.DebugContext(ctx, "saying that this server is gone failed", "error", err)
	}
	if l := g.link.Swap(nil); l != nil {
		l.retire()
	}
}
