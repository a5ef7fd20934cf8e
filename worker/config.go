package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/worker/reconcile"
	"github.com/forewarm/forewarm/worker/relay"
	"github.com/forewarm/forewarm/worker/tasks"
)

// Config tunes a Worker. Only Deployment is required; zero fields get the
// defaults of the parts they belong to.
type Config struct {
	// Deployment is the owner tag of this installation's machines. Two
	// installations that share an account at a provider must have different ones.
	Deployment string
	// Concurrency is how many tasks run at once. Default 16.
	Concurrency int
	// Grace is how long running handlers may take to finish when the worker is
	// told to end. Default 10 s.
	Grace time.Duration
	// ProviderDelay is how long after a machine's creation its provider may not know it.
	ProviderDelay time.Duration
	// Lease, Heartbeat: see tasks.Config. A zero Heartbeat means none.
	Lease, Heartbeat time.Duration
	// Limit, Window, Every: see relay.Config.
	DispatchLimit                 int
	DispatchWindow, DispatchEvery time.Duration
	// ReapEvery is how often tasks of silent workers are looked for.
	ReapEvery time.Duration
	// EnsureEvery is how often the rows of the sweeps are looked for. Default 1 min.
	EnsureEvery time.Duration
	// Watermark is the file that remembers how far the journal had come, so that a
	// database restored from a backup is noticed before anything is done on its
	// word; empty: none.
	Watermark string
	// Holder tells this worker from all others, before and after a restart, where a
	// provisioner serves one worker at a time and where workers are listed; Host is where
	// it runs, for people. An empty Holder takes no notice of other workers, and is not
	// listed.
	Holder, Host string
	// JoinToken makes what the daemon of a node needs to join, for provisioners that start
	// daemons; nil: they get none.
	JoinToken func(ctx context.Context, n node.Node) (provisioners.Daemon, error)
	// Sweep: see reconcile.Config. Its Deployment, Logger and Metrics are this
	// Config's.
	Sweep reconcile.Config
	// Rand is the source of chance for back-off; the Worker takes it over.
	Rand *rand.Rand
	// Clock measures durations. Nil means the machine's clock.
	Clock clock.Clock
	// Logger is for all parts. Nil means slog.Default().
	Logger *slog.Logger
	// Metrics are for all parts; nil counts nothing.
	Metrics *obs.Metrics
}

// WithDefaults fills what is zero and has its default here.
func (c Config) WithDefaults() Config {
	if c.Concurrency == 0 {
		c.Concurrency = 16
	}
	if c.Grace == 0 {
		c.Grace = 10 * time.Second
	}
	if c.EnsureEvery == 0 {
		c.EnsureEvery = time.Minute
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Clock == nil {
		c.Clock = clock.System{}
	}
	return c
}

// Validate names everything that is wrong with c.
func (c Config) Validate() error {
	var errs []error
	if c.Deployment == "" {
		errs = append(errs, errors.New("deployment: is empty, want the tag of this installation's machines"))
	}
	if c.Concurrency < 1 {
		errs = append(errs, fmt.Errorf("concurrency: %d, want 1 or more", c.Concurrency))
	}
	if lease := c.tasksConfig().WithDefaults().Lease; c.Heartbeat < 0 || 2*c.Heartbeat > lease {
		errs = append(errs, fmt.Errorf("heartbeat: %v, want at most half of the lease of %v", c.Heartbeat, lease))
	}
	return errors.Join(errs...)
}

func (c Config) relayConfig() relay.Config {
	return relay.Config{Limit: c.DispatchLimit, Window: c.DispatchWindow, Every: c.DispatchEvery,
		Logger: c.Logger, Metrics: c.Metrics}
}

func (c Config) tasksConfig() tasks.Config {
	return tasks.Config{
		Lease: c.Lease, Heartbeat: c.Heartbeat, Rand: c.Rand, Clock: c.Clock, Logger: c.Logger, Metrics: c.Metrics,
	}
}

func (c Config) sweepConfig() reconcile.Config {
	s := c.Sweep
	s.Deployment, s.Logger, s.Metrics = c.Deployment, c.Logger, c.Metrics
	return s
}
