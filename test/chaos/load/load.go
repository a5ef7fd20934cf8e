package load

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/internal/httpx"
)

// answerIn is how long one request may take before it is sent to another server.
// It is shorter than a server may take, so that some are answered to nobody.
const answerIn = 4 * time.Second

// Load is everybody who books.
type Load struct {
	Journal *Journal
	http    *http.Client
	servers []string
	people  []*person
	agents  []*agent
	tenants []*Tenant

	visits  Visits
	streams *http.Transport // of sessions, which last
	holders []*holder
	jobs    []*submitter
}

// Tenant is an organization with the key of its administrator.
type Tenant struct {
	ID  string
	API []*client.Client // one for each server
}

// Config says who books where.
type Config struct {
	Servers []string // base URLs
	Key     string   // an operator's
	Tenants int
	People  int // of each tenant
	Pools   []string
	Visits  Visits
	Holders int // of each tenant, who visit nodes
	Jobs    int // of each tenant, who submit jobs to them
	MaxGPUs int // of each tenant
	Seed    uint64
}

// New makes the tenants and their keys.
func New(ctx context.Context, cfg Config, journal *Journal) (*Load, error) {
	l := &Load{Journal: journal, servers: cfg.Servers, visits: cfg.Visits, streams: &http.Transport{},
		http: httpx.NewClient(httpx.Config{Timeout: answerIn, MaxBody: 32 << 20})}
	operator, _, err := l.newClients(cfg.Key)
	if err != nil {
		return nil, err
	}
	var pools []string
	for _, name := range cfg.Pools {
		p, err := operator[0].Pool(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("reading pool %s: %w", name, err)
		}
		pools = append(pools, p.ID)
	}
	for i := range cfg.Tenants {
		if err := l.createTenant(ctx, cfg, operator[0], i, pools); err != nil {
			return nil, fmt.Errorf("making tenant %d: %w", i, err)
		}
	}
	return l, nil
}

// Tenants are the organizations, to look at them and to clean up after them.
func (l *Load) Tenants() []*Tenant { return l.tenants }

// newClients are those of one key, one for each server.
func (l *Load) newClients(key string) ([]*client.Client, batchClient, error) {
	d := batchClient{key: key, http: l.http, urls: map[*client.Client]string{}}
	var all []*client.Client
	for _, url := range l.servers {
		c, err := client.New(url, key, l.http)
		if err != nil {
			return nil, d, fmt.Errorf("making a client of %s: %w", url, err)
		}
		d.urls[c] = url
		all = append(all, c)
	}
	return all, d, nil
}

// newCaller is somebody whose choices are those of the seed, whatever the others do.
func (l *Load) newCaller(seed uint64, org string, servers []*client.Client) *caller {
	n := len(l.people) + len(l.agents) + len(l.holders) + len(l.jobs)
	chance := rand.New(rand.NewPCG(seed, uint64(1000+n))) //nolint:gosec // a run is to be repeatable
	return &caller{journal: l.Journal, org: org, servers: servers, chance: chance, at: n}
}

// Drive starts everybody. The function that it returns tells them to finish what
// they are asking and waits until they have.
func (l *Load) Drive(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var busy sync.WaitGroup
	now := tide{time.Now()}
	for _, p := range l.people {
		p.tide = now
		busy.Go(func() { p.runPerson(ctx) })
	}
	for _, a := range l.agents {
		a.tide = now
		busy.Go(func() { a.runAgent(ctx) })
	}
	for _, h := range l.holders {
		if !h.steady {
			h.tide = now
		}
		busy.Go(func() { h.runHolder(ctx) })
	}
	for _, s := range l.jobs {
		s.tide = now
		busy.Go(func() { s.runSubmitter(ctx) })
	}
	return func() { cancel(); busy.Wait() }
}

// Close ends the connections.
func (l *Load) Close() {
	l.http.CloseIdleConnections()
	l.streams.CloseIdleConnections()
}

// Client is one with the key, of one server.
func (l *Load) Client(url, key string) (*client.Client, error) { return client.New(url, key, l.http) }
