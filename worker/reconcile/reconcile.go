// Package reconcile finds what every other path forgot. It compares what a
// provider has with what the ledger says, in both directions, and frees the
// tasks of workers that have gone silent.
//
// Both mirror bugs have cost money elsewhere: machines that nobody knew were
// billed for months, and healthy machines were ended because a list was short
// (aws/aws-parallelcluster-node#694, skypilot-org/skypilot#10517). So nothing is
// concluded from an incomplete list, a machine is ended only on the evidence of
// two lists and its age, never many at once, and a node is never given up here
// at all: the sweep only makes sure that somebody looks after it.
package reconcile

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/ledger/verbs"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/worker/tasks"
)

// Config tunes a Sweeper. The zero value is made whole by WithDefaults.
type Config struct {
	// Deployment is the owner tag of this installation's machines. Required: a
	// machine without it is never touched.
	Deployment string
	// Grace is how old a machine without a node must be. Default 10 min.
	Grace time.Duration
	// OrphanedFor is how long a machine must have been without a node since a sweep first
	// saw it so. Default 1 min.
	OrphanedFor time.Duration
	// KillMin and KillPercent bound how many machines one sweep ends: the larger
	// of the number and the share of the listed machines. Defaults 3 and 10.
	KillMin, KillPercent int
	// Logger gets every machine that is ended, and alarms. Nil means
	// slog.Default().
	Logger *slog.Logger
	// Metrics counts them; nil counts nothing.
	Metrics *obs.Metrics
}

// WithDefaults fills what is zero.
func (c Config) WithDefaults() Config {
	if c.Grace == 0 {
		c.Grace = 10 * time.Minute
	}
	if c.OrphanedFor == 0 {
		c.OrphanedFor = time.Minute
	}
	if c.KillMin == 0 {
		c.KillMin = 3
	}
	if c.KillPercent == 0 {
		c.KillPercent = 10
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// Sweeper compares providers with the ledger. It is safe for concurrent use.
// Make one with New.
type Sweeper struct {
	ledger       *verbs.Ledger
	provisioners map[string]provisioners.Provisioner
	cfg          Config

	mu sync.Mutex
	// seen is what is known of each machine without a node that is listed, by
	// provisioner and id. Losing it only delays an end.
	seen map[string]map[string]*sighting
	// settled are machines without a node whose account is closed.
	settled map[string]bool
}

// New returns a sweeper of the provisioners, by name. It fails without a
// deployment: the machines of all the others in the account would be ours.
func New(l *verbs.Ledger, byName map[string]provisioners.Provisioner, cfg Config) (*Sweeper, error) {
	if cfg.Deployment == "" {
		return nil, fmt.Errorf("configuring the sweep: the deployment has no name")
	}
	return &Sweeper{ledger: l, provisioners: byName, cfg: cfg.WithDefaults(), seen: map[string]map[string]*sighting{},
		settled: map[string]bool{}}, nil
}

// Handle is the handler of the sweep task of one provisioner. The task is run
// again and again.
func (s *Sweeper) Handle(ctx context.Context, c tasks.Claim) error {
	p, ok := s.provisioners[c.Task.Subject]
	if !ok {
		return fmt.Errorf("sweeping: no provisioner %q is configured on this worker", c.Task.Subject)
	}
	if _, err := s.Sweep(ctx, p); err != nil {
		return fmt.Errorf("sweeping %s: %w", p.Name(), err)
	}
	if err := s.ledger.RetryTask(ctx, c.Guard, s.ledger.SweepEvery(), ""); err != nil {
		return fmt.Errorf("ending the sweep of %s: %w", p.Name(), err)
	}
	return nil
}

// Names returns the names of the provisioners, sorted.
func (s *Sweeper) Names() []string { return slices.Sorted(maps.Keys(s.provisioners)) }
