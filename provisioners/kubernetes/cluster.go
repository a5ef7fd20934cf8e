//go:build clouds

package kubernetes

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/provisioners"
)

// Cluster is one namespace of a cluster as a provisioner. It is safe for
// concurrent use.
type Cluster struct {
	config Config
	clock  clock.Clock
	api    api

	mu sync.Mutex
	// short is until when a type counts as out of stock. A restart may lose it:
	// the next placeholder then finds out again.
	short map[[2]string]time.Time
	// sparse is since when a machine's node has had fewer GPUs than asked for.
	sparse map[key]time.Time
}

var (
	_ provisioners.Provisioner = (*Cluster)(nil)
	_ provisioners.Renewer     = (*Cluster)(nil)

	_ provisioners.DaemonStarter = (*Cluster)(nil)
)

// New reads the credentials. Whether the cluster can be reached is first asked
// by Create.
func New(config Config, clock clock.Clock) (*Cluster, error) {
	config = config.WithDefaults()
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("configuring cluster %q: %w", config.Name, err)
	}
	client, err := newAPI(config)
	if err != nil {
		return nil, fmt.Errorf("configuring cluster %q: %w", config.Name, err)
	}
	return &Cluster{config: config, clock: clock, api: client, short: map[[2]string]time.Time{},
		sparse: map[key]time.Time{}}, nil
}

// Name returns the configured name.
func (c *Cluster) Name() string { return c.config.Name }

// StartsDaemons reports whether placeholders run the daemon of their node.
func (c *Cluster) StartsDaemons() bool { return c.config.Daemon.Program != "" }

// Offers lists the configured kinds of node.
func (c *Cluster) Offers(ctx context.Context) ([]provisioners.Offer, error) {
	if err := provisioners.Ended(ctx); err != nil {
		return nil, err
	}
	offers := make([]provisioners.Offer, len(c.config.Offers))
	for i, offer := range c.config.Offers {
		offers[i] = offer.portOffer()
	}
	return offers, nil
}

// findOffer finds what the spec asks for. A spec without a region takes the first
// offer of the type.
func (c Config) findOffer(s provisioners.Spec) (Offer, error) {
	for _, offer := range c.Offers {
		if offer.Type == s.Type && (s.Region == "" || offer.Region == s.Region) {
			return offer, nil
		}
	}
	return Offer{}, provisioners.Errorf(provisioners.KindBadSpec, "no type %q in region %q", s.Type, s.Region)
}

// ranOut notes that no node came for a placeholder of the type.
func (c *Cluster) ranOut(s spec) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.short[[2]string{s.Type, s.Region}] = c.clock.Now().Add(c.config.CapacityMemory)
}

// checkStockOut refuses a type of which none could be had a moment ago: a pending
// placeholder costs the control plane its whole patience to learn the same.
func (c *Cluster) checkStockOut(s spec) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.clock.Now().Before(c.short[[2]string{s.Type, s.Region}]) {
		return nil
	}
	return &provisioners.Error{
		Kind: provisioners.KindCapacity, Scope: s.Region + "/" + s.Type,
		Message: "the autoscaler brought no node a moment ago",
	}
}
