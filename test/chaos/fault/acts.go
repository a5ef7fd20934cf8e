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

func server(s *site.Site) []*site.Process { return s.Forewarm()[:len(s.Servers)] }
func worker(s *site.Site) []*site.Process { return s.Workers }

// process breaks one process of a role.
func process(of role, act func(*site.Process) (mend, error)) begin {
	return func(_ context.Context, b *blow) (string, mend, error) {
		all := of(b.site)
		for _, i := range b.chance.Perm(len(all)) {
			if b.take(all[i].Name) {
				end, err := act(all[i])
				return all[i].Name, end, err
			}
		}
		return "", nil, nil
	}
}

func kill(p *site.Process) (mend, error) {
	p.Kill()
	return func(context.Context) error { return p.Start() }, nil
}

func stop(p *site.Process) (mend, error) {
	p.Stop()
	return func(context.Context) error { return p.Start() }, nil
}

func pause(p *site.Process) (mend, error) {
	return func(context.Context) error { return p.Resume() }, p.Pause()
}

// flushRedis is over as soon as it has happened.
func flushRedis(ctx context.Context, b *blow) (string, mend, error) {
	if !b.take("redis") {
		return "", nil, nil
	}
	return "redis", nil, b.site.Redis.Flush(ctx)
}

func killRedis(_ context.Context, b *blow) (string, mend, error) {
	if !b.take("redis") {
		return "", nil, nil
	}
	b.site.Redis.Kill()
	return "redis", b.site.Redis.Up, nil
}

func crashPostgres(_ context.Context, b *blow) (string, mend, error) {
	if !b.take("postgres") {
		return "", nil, nil
	}
	b.site.Postgres.Crash()
	return "postgres", b.site.Postgres.Up, nil
}

// proxy breaks the connections to one server.
func proxy(name string, act func(*site.Proxy, *rand.Rand) error) begin {
	return func(_ context.Context, b *blow) (string, mend, error) {
		if !b.take("to " + name) {
			return "", nil, nil
		}
		p := b.site.Proxies[name]
		return "to " + name, p.Heal, act(p, b.chance)
	}
}

func cut(p *site.Proxy, _ *rand.Rand) error      { p.Cut(); return nil }
func halfOpen(p *site.Proxy, _ *rand.Rand) error { return p.HalfOpen() }
func swallow(p *site.Proxy, _ *rand.Rand) error  { return p.Swallow() }
func truncate(p *site.Proxy, r *rand.Rand) error { return p.Truncate(50 + r.IntN(3000)) }
func delay(p *site.Proxy, r *rand.Rand) error {
	milliseconds := 50 + r.IntN(700)
	return p.Delay(milliseconds, milliseconds/2)
}

// cloud has the provider do what providers do. Some of it lasts until it is
// mended; the rest is over when it has hit some calls.
func cloud(act func(*site.Cloud, *rand.Rand) (what string, heal func())) begin {
	return func(_ context.Context, b *blow) (string, mend, error) {
		if !b.take("cloud") {
			return "", nil, nil
		}
		what, heal := act(b.site.Cloud, b.chance)
		if heal == nil {
			return what, nil, nil
		}
		return what, func(context.Context) error { heal(); return nil }, nil
	}
}

func some(r *rand.Rand, most int) int { return 1 + r.IntN(most) }

func lostLaunch(c *site.Cloud, r *rand.Rand) (string, func()) {
	n := some(r, 4)
	c.LoseAnswers(site.Launch, n)
	return times(n), nil
}

func lostTerminate(c *site.Cloud, r *rand.Rand) (string, func()) {
	n := some(r, 4)
	c.LoseAnswers(site.Terminate, n)
	return times(n), nil
}

func undead(c *site.Cloud, r *rand.Rand) (string, func()) {
	n := some(r, 4)
	c.Ignore(n)
	return times(n), nil
}

func throttle(c *site.Cloud, r *rand.Rand) (string, func()) {
	n := some(r, 20)
	c.Refuse("RequestLimitExceeded", n)
	return times(n), nil
}

func serverErrors(c *site.Cloud, r *rand.Rand) (string, func()) {
	n := some(r, 20)
	c.Refuse([]string{"InternalError", "Unavailable"}[r.IntN(2)], n)
	return times(n), nil
}

func listsLag(c *site.Cloud, r *rand.Rand) (string, func()) {
	lag := time.Duration(1+r.IntN(6)) * time.Second
	c.Lag(lag)
	return fmt.Sprintf("by %v", lag), func() { c.Lag(0) }
}

func listsGarbled(c *site.Cloud, r *rand.Rand) (string, func()) {
	n := some(r, 6)
	c.Garble(n)
	return times(n), nil
}

func listsEmpty(c *site.Cloud, r *rand.Rand) (string, func()) {
	n := some(r, 3)
	c.Empty(n)
	return times(n), nil
}

func soldOut(c *site.Cloud, _ *rand.Rand) (string, func()) {
	c.Stock(0)
	return "everything", func() { c.Stock(site.Plenty) }
}

func times(n int) string { return fmt.Sprintf("%d times", n) }

func reclaim(_ context.Context, b *blow) (string, mend, error) {
	if !b.site.Cloud.Reclaim(b.chance) {
		return "", nil, nil
	}
	return "a spot machine", nil, nil
}
