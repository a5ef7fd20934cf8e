package slurm

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/provisioners"
)

// Observed keeps nodes of an elastic cluster warm for the plain jobs of its users, and
// watches who used them (Config.Use "observed").
//
// A node is warmed by a heartbeat: a job of a second that is bound to it, for which
// Slurm powers the node up, or by an administrator's POWER_UP. It stays warm because
// a heartbeat runs on it whenever it has been idle for a third of SuspendTime.
//
// What is kept is written in the cluster itself: each kept node has one heartbeat
// ahead, which is pending and carries the tags in its comment. When nobody moves it
// any more it runs, once, and Slurm suspends the node as it does with any other.
//
// Observed is safe for concurrent use.
type Observed struct {
	commands
	config Config
	clock  clock.Clock
	memory *memory
	// turn lets one call at a time look and submit.
	turn chan struct{}

	mu        sync.Mutex
	settings  settings  // what the cluster's configuration said
	asked     time.Time // when it was asked
	denied    time.Time // when POWER_UP was refused
	powers    bool      // POWER_UP was accepted since
	submitted int       // heartbeats, by this process
	// portion is how much of the past accounting is asked for at once.
	portion time.Duration
}

var _ provisioners.Observer = (*Observed)(nil)

// NewObserved opens the cluster. It fails on a bad config and on a damaged state file;
// Slurm itself is first asked by the first call.
func NewObserved(config Config, clock clock.Clock) (*Observed, error) {
	config.Use = UseObserved
	config = config.WithDefaults()
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("configuring observed Slurm cluster %q: %w", config.Name, err)
	}
	memory, err := openMemory(config.StateFile, clock)
	if err != nil {
		return nil, fmt.Errorf("opening observed Slurm cluster %q: %w", config.Name, err)
	}
	return &Observed{commands: newCommands(config), config: config, clock: clock, memory: memory,
		turn: make(chan struct{}, 1), portion: longestSpan}, nil
}

// Name returns the configured name.
func (o *Observed) Name() string { return o.config.Name }

// Offers lists the configured offers, as Cluster.Offers does.
func (o *Observed) Offers(ctx context.Context) ([]provisioners.Offer, error) {
	reserved := &Cluster{commands: o.commands, config: o.config, clock: o.clock, memory: o.memory}
	offers, err := reserved.Offers(ctx)
	for i := range offers {
		offers[i].Observed = true
	}
	return offers, err
}

// takeTurn waits until no other call looks and submits.
func (o *Observed) takeTurn(ctx context.Context) (done func(), err error) {
	if err := provisioners.Ended(ctx); err != nil {
		return nil, err
	}
	select {
	case o.turn <- struct{}{}:
		return func() { <-o.turn }, nil
	case <-ctx.Done():
		return nil, provisioners.Ended(ctx)
	}
}
