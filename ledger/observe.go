package ledger

import (
	"time"

	"github.com/forewarm/forewarm/core/allocation"
)

// Watched says how far the cluster of a provisioner was watched.
type Watched struct {
	Provisioner string
	Mark        string // where the next observation begins; its provisioner knows what it means
	// At is the time of the last look that was complete, by the cluster's clock; zero:
	// there was none.
	At time.Time
}

// Watch is what somebody needs who looks at a cluster now.
type Watch struct {
	// Wanted is false where no pool is observed there: nothing has to be looked at.
	Wanted bool
	Mark   string
	// Warm are the provider's ids of the nodes that are to stay warm.
	Warm []string
}

// Observation is what a cluster's scheduler did since a mark.
type Observation struct {
	Provisioner string
	At          time.Time // by the cluster's clock, which all its times are of
	Mark        string
	// Complete is false where work may have begun or ended unseen since the mark. What
	// is missing from an incomplete one goes on.
	Complete bool
	// KeepWithin is how soon the nodes that are kept warm need another look; 0: whenever.
	KeepWithin time.Duration
	// Work is what runs now, or waits for nodes that boot for it, and what began or ended
	// since the mark. What waits for anything else is not in it.
	Work []ObservedWork
}

// ObservedWork is a job or pod that uses GPUs, as its cluster tells of it.
type ObservedWork struct {
	allocation.Work
	Type  string     // the provisioner's name for what it runs on, as in a pool
	Nodes []WorkNode // at least one
	// StartedAt is when it could use its nodes; zero: it waits for nodes that boot, or
	// ended before it began. EndedAt is zero while it goes on.
	StartedAt, EndedAt time.Time
}

// WorkNode is a part of a piece of work.
type WorkNode struct {
	ProviderID string // of a node that is kept warm there; empty: it is another
	GPUs       int
}

// Observed counts what an observation changed.
type Observed struct {
	Started, Ended int
	Warm           int // of those that started, they were on nodes that were kept warm
	Claims         int // promises, or parts of them, that were claimed
}
