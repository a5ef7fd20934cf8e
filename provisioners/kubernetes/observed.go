//go:build clouds

package kubernetes

import (
	"context"
	"time"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/provisioners"
)

// Observed keeps nodes of a cluster warm for the plain pods of its users, and watches who
// used them (Config.Use "observed").
//
// What is kept is written in the cluster itself. The record of a token, a ConfigMap,
// says which node is in keeping and until when; a claim, a Lease that is named after the
// node, lets one record at most have it. A placeholder, or a replica of a
// CapacityBuffer, only makes the autoscaler boot the node and leave it there: it is
// there while the node is idle, and its absence ends nothing.
//
// Observed is safe for concurrent use, also by several processes.
type Observed struct {
	*eyes
	claims  claims
	guards  guardKeeper
	buffers bufferKeeper
}

var _ provisioners.Observer = (*Observed)(nil)

// NewObserved reads the credentials. Whether the cluster can be reached is first asked by
// Create or Observe.
func NewObserved(config Config, clock clock.Clock) (*Observed, error) {
	config.Use = UseObserved
	cluster, err := New(config, clock)
	if err != nil {
		return nil, err
	}
	cluster.api.role = roleKeeping
	e := &eyes{cluster: cluster, served: map[string]servedKind{}}
	of, guards := claims{e}, guardKeeper{e}
	return &Observed{eyes: e, claims: of, guards: guards, buffers: bufferKeeper{e, of, guards}}, nil
}

// Name returns the configured name.
func (o *Observed) Name() string { return o.cluster.Name() }

// Offers lists the configured kinds of node.
func (o *Observed) Offers(ctx context.Context) ([]provisioners.Offer, error) {
	offers, err := o.cluster.Offers(ctx)
	for i := range offers {
		offers[i].Observed = true
	}
	return offers, err
}

// keepWithin is the longest time between two calls of Keep.
func (c Config) keepWithin() time.Duration { return c.KeepFor / keepsPerLease }
