package ledger

import (
	"time"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/node"
)

// Instance is what a provider said of a machine, in plain values.
type Instance struct {
	ProviderID string
	Address    string
	Devices    []capacity.Device
	Simulated  bool
	// Born and Ended are the provider's own times, by which it charges; zero
	// where it does not say.
	Born, Ended time.Time
	// Endless says that its provider gives machines no dead-man switch: it never
	// ends by itself.
	Endless bool
	// CheckWithin is how soon it should be looked at again; zero: as configured.
	CheckWithin time.Duration
}

// Loss is what is known of a machine that is gone without having been removed.
type Loss struct {
	Preempted bool      // its provider took it back for somebody else
	Ended     time.Time // until when the provider charges; zero where it does not say
	// Why is what an operator must know of it, in the provider's words; empty for nothing.
	Why string
}

// CreateIntent is a committed decision to make a machine: Node.Token is stored,
// so the call that follows may be repeated for ever.
type CreateIntent struct {
	Node   node.Node
	Pool   Pool
	Wanted bool // false: there is nothing to do, and the task is finished
}
