package fault

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/forewarm/forewarm/test/chaos/site"
)

// role chooses processes of the control plane.
type role func(*site.Site) []*site.Process

func serversOf(s *site.Site) []*site.Process { return s.Forewarm()[:len(s.Servers)] }
func workersOf(s *site.Site) []*site.Process { return s.Workers }
func daemonsOf(s *site.Site) []*site.Process { return s.Rack.Daemons() }

// breakProcess breaks one process of a role.
func breakProcess(of role, act func(*site.Process) (undo, error)) begin {
	return func(_ context.Context, b *injection) (string, undo, error) {
		all := of(b.site)
		for _, i := range b.chance.Perm(len(all)) {
			if b.claimTarget(all[i].Name) {
				end, err := act(all[i])
				return all[i].Name, end, err
			}
		}
		return "", nil, nil
	}
}

func killProcess(p *site.Process) (undo, error) {
	p.Kill()
	return func(context.Context) error { return p.Start() }, nil
}

func stopProcess(p *site.Process) (undo, error) {
	p.Stop()
	return func(context.Context) error { return p.Start() }, nil
}

func pauseProcess(p *site.Process) (undo, error) {
	return func(context.Context) error { return p.Resume() }, p.Pause()
}

// flushRedis is over as soon as it has happened.
func flushRedis(ctx context.Context, b *injection) (string, undo, error) {
	if !b.claimTarget("redis") {
		return "", nil, nil
	}
	return "redis", nil, b.site.Redis.Flush(ctx)
}

func killRedis(_ context.Context, b *injection) (string, undo, error) {
	if !b.claimTarget("redis") {
		return "", nil, nil
	}
	b.site.Redis.Kill()
	return "redis", b.site.Redis.Up, nil
}

func crashPostgres(_ context.Context, b *injection) (string, undo, error) {
	if !b.claimTarget("postgres") {
		return "", nil, nil
	}
	b.site.Postgres.Crash()
	return "postgres", b.site.Postgres.Up, nil
}

// breakProxy breaks the connections to one server.
func breakProxy(name string, act func(*site.Proxy, *rand.Rand) error) begin {
	return func(_ context.Context, b *injection) (string, undo, error) {
		if !b.claimTarget("to " + name) {
			return "", nil, nil
		}
		p := b.site.Proxies[name]
		return "to " + name, p.Heal, act(p, b.chance)
	}
}

// breakPeers breaks the connections of the other servers to one of ours.
func breakPeers(act func(*site.Proxy, *rand.Rand) error) begin {
	return func(_ context.Context, b *injection) (string, undo, error) {
		for _, i := range b.chance.Perm(len(b.site.Servers)) {
			if p := b.site.Servers[i].Peers; b.claimTarget("to " + p.Name) {
				return "to " + p.Name, p.Heal, act(p, b.chance)
			}
		}
		return "", nil, nil
	}
}

// breakDaemons breaks the connections of one node's daemon to the servers.
func breakDaemons(act func(*site.Proxy, *rand.Rand) error) begin {
	return func(_ context.Context, b *injection) (string, undo, error) {
		hosts := b.site.Rack.Hosts()
		for _, i := range b.chance.Perm(len(hosts)) {
			if p := b.site.Proxies[site.DaemonProxy(hosts[i].Slot)]; b.claimTarget("to " + p.Name) {
				return "to " + p.Name, p.Heal, act(p, b.chance)
			}
		}
		return "", nil, nil
	}
}

func cutConnections(p *site.Proxy, _ *rand.Rand) error { p.Cut(); return nil }
func halfOpen(p *site.Proxy, _ *rand.Rand) error       { return p.HalfOpen() }
func swallowData(p *site.Proxy, _ *rand.Rand) error    { return p.Swallow() }
func truncateData(p *site.Proxy, r *rand.Rand) error   { return p.Truncate(50 + r.IntN(3000)) }
func delayData(p *site.Proxy, r *rand.Rand) error {
	milliseconds := 50 + r.IntN(700)
	return p.Delay(milliseconds, milliseconds/2)
}

// disturbCloud has the provider do what providers do. Some of it lasts until it is
// mended; the rest is over when it has hit some calls.
func disturbCloud(act func(*site.Cloud, *rand.Rand) (what string, heal func())) begin {
	return func(_ context.Context, b *injection) (string, undo, error) {
		if !b.claimTarget("cloud") {
			return "", nil, nil
		}
		what, heal := act(b.site.Cloud, b.chance)
		if heal == nil {
			return what, nil, nil
		}
		return what, func(context.Context) error { heal(); return nil }, nil
	}
}

func drawCount(r *rand.Rand, most int) int { return 1 + r.IntN(most) }

func lostLaunch(c *site.Cloud, r *rand.Rand) (string, func()) {
	n := drawCount(r, 4)
	c.LoseAnswers(site.Launch, n)
	return formatTimes(n), nil
}

func lostTerminate(c *site.Cloud, r *rand.Rand) (string, func()) {
	n := drawCount(r, 4)
	c.LoseAnswers(site.Terminate, n)
	return formatTimes(n), nil
}

func ignoreDeletes(c *site.Cloud, r *rand.Rand) (string, func()) {
	n := drawCount(r, 4)
	c.Ignore(n)
	return formatTimes(n), nil
}

func throttleCalls(c *site.Cloud, r *rand.Rand) (string, func()) {
	n := drawCount(r, 20)
	c.Refuse("RequestLimitExceeded", n)
	return formatTimes(n), nil
}

func serverErrors(c *site.Cloud, r *rand.Rand) (string, func()) {
	n := drawCount(r, 20)
	c.Refuse([]string{"InternalError", "Unavailable"}[r.IntN(2)], n)
	return formatTimes(n), nil
}

func listsLag(c *site.Cloud, r *rand.Rand) (string, func()) {
	lag := time.Duration(1+r.IntN(6)) * time.Second
	c.Lag(lag)
	return fmt.Sprintf("by %v", lag), func() { c.Lag(0) }
}

func listsGarbled(c *site.Cloud, r *rand.Rand) (string, func()) {
	n := drawCount(r, 6)
	c.Garble(n)
	return formatTimes(n), nil
}

func listsEmpty(c *site.Cloud, r *rand.Rand) (string, func()) {
	n := drawCount(r, 3)
	c.Empty(n)
	return formatTimes(n), nil
}

func soldOut(c *site.Cloud, _ *rand.Rand) (string, func()) {
	c.Stock(0)
	return "everything", func() { c.Stock(site.Plenty) }
}

func formatTimes(n int) string { return fmt.Sprintf("%d times", n) }

func reclaimSpot(_ context.Context, b *injection) (string, undo, error) {
	if !b.site.Cloud.Reclaim(b.chance) {
		return "", nil, nil
	}
	return "a spot machine", nil, nil
}
