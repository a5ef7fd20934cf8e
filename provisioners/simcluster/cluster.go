// Package simcluster is an elastic GPU cluster that does not exist, with a scheduler of
// its own: users submit jobs to it who never hear of Forewarm. It is for trying and
// testing observed pools.
//
// Nothing in it runs or waits. Whenever somebody looks, it is computed from where it was
// to the clock's time, event by event, so that a year of cluster fits into a second of
// test, and the same seed, calls and times give the same cluster. Everything that
// it offers or makes says Simulated.
//
// Its scheduler is as simple as one can be that has the traits which count here. Jobs of
// a type are served in the order in which they came; a job gets all its nodes at once or
// none; nodes that are up are preferred to those that boot, and these to cold ones; a job
// on cold nodes has them powered up, and starts when the last of them is up; a node
// without work goes cold after a time.
package simcluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/provisioners"
)

// Cluster is the simulated cluster. It is safe for concurrent use.
type Cluster struct {
	config Config
	clock  clock.Clock

	mu        sync.Mutex
	at        time.Time // until when everything is computed
	nodes     []*node   // by offer and number
	jobs      []*job    // that are not over, in the order in which they came
	ended     []*job    // in the order in which they ended
	forgotten time.Time // what ended before it may be missing from ended
	keepings  map[string]*keeping
	submitted int64 // jobs by Submit
	dirty     bool  // the state file is older than the fields above
}

var (
	_ provisioners.Observer  = (*Cluster)(nil)
	_ provisioners.Exclusive = (*Cluster)(nil)
)

// New opens the cluster: with every node cold and nothing submitted, or as its state file
// says. It fails on a bad config and on a damaged file.
func New(config Config, clock clock.Clock) (*Cluster, error) {
	config = config.WithDefaults()
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("configuring simulated cluster %q: %w", config.Name, err)
	}
	now := clock.Now().UTC().Truncate(time.Microsecond)
	c := &Cluster{config: config, clock: clock, at: now, forgotten: now, keepings: map[string]*keeping{}, dirty: true}
	c.addNodes()
	if err := c.loadState(); err != nil {
		return nil, fmt.Errorf("opening simulated cluster %q: %w", config.Name, err)
	}
	return c, nil
}

// Name returns the configured name.
func (c *Cluster) Name() string { return c.config.Name }

// Exclusive says that the simulation is known to one process.
func (c *Cluster) Exclusive() {}

// Offers lists the configured kinds of nodes.
func (c *Cluster) Offers(ctx context.Context) ([]provisioners.Offer, error) {
	if err := provisioners.Ended(ctx); err != nil {
		return nil, err
	}
	offers := make([]provisioners.Offer, len(c.config.Offers))
	for i, offer := range c.config.Offers {
		offers[i] = offer.portOffer(c.config.Region)
	}
	return offers, nil
}

// enterCall computes the cluster until now for a call. The caller holds the lock.
func (c *Cluster) enterCall(ctx context.Context) error {
	if err := provisioners.Ended(ctx); err != nil {
		return err
	}
	c.advanceTo(c.clock.Now().UTC().Truncate(time.Microsecond))
	return nil
}
