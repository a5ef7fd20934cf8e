package ledger

import (
	"time"

	"github.com/forewarm/forewarm/core/allocation"
)

// Watched says how far, and how well, the cluster of a provisioner was watched.
type Watched struct {
	Provisioner string
	Mark        string // where the next observation begins; its provisioner knows what it means
	// At is the time of the last look that was complete, by the cluster's clock; zero:
	// there was none.
	At time.Time
	// BlindSince is since when, by the database's clock, no look was complete; zero: the
	// last one was.
	BlindSince time.Time
	// KeepWithin is how soon the nodes that are kept warm have to be kept again; 0: it does
	// not matter, or is not known yet.
	KeepWithin time.Duration
	Waiting    []WaitingWork // that the last look saw, by pool and reason
	Rooms      []Room        // that the last look saw, by pool
}

// Room is what is free on the nodes of an observed pool's cluster that are up, whether they
// are kept warm or not. It holds counts only: any key that sees the pool may see them.
type Room struct {
	PoolID string
	At     time.Time // of the look, by the database's clock
	Idle   int       // nodes that no work is on
	Shared []SharedNodes
}

// SharedNodes counts the nodes that have work, and as many GPUs free beside it.
type SharedNodes struct {
	Free  int // GPUs of each, at least 1
	Nodes int
}

// RoomFor is for how long the room that was seen counts: jobs come and go.
const RoomFor = 2 * time.Minute

// RoomOf returns the room of a pool, and false if no look has shown it lately.
func (w Watched) RoomOf(pool string, now time.Time) (Room, bool) {
	for _, r := range w.Rooms {
		if r.PoolID == pool {
			return r, now.Sub(r.At) <= RoomFor
		}
	}
	return Room{}, false
}

// WaitingWork is the work of a pool that waits for one reason, which is not a boot.
type WaitingWork struct {
	PoolID string
	Reason string // a code, as Work.WaitedFor
	Count  int
	IDs    []string // of as many as are remembered, sorted
}

// Watch is what somebody needs who looks at a cluster now.
type Watch struct {
	// Wanted is false where no pool is observed there: nothing has to be looked at.
	Wanted bool
	Mark   string
	Now    time.Time // by the database's clock: give it to Observation.SeenAt
	// BlindSince is Watched.BlindSince.
	BlindSince time.Time
	// Warm are the provider's ids of the nodes that are to stay warm.
	Warm []string
	// KeepAgain is how long after a Keep the next one comes.
	KeepAgain time.Duration
}

// BlindAfter is for how long no look at a cluster may be complete before that is a
// trouble: boots, restarts and the catch-up after an outage take less.
const BlindAfter = 10 * time.Minute

// Observation is what a cluster's scheduler did since a mark.
type Observation struct {
	Provisioner string
	At          time.Time // by the cluster's clock, which all its times are of
	// SeenAt is the time of the look by the database's clock; zero: that of the report.
	SeenAt time.Time
	Mark   string
	// Complete is false where work may have begun or ended unseen since the mark. What
	// is missing from an incomplete one goes on.
	Complete bool
	// More says that what was missed is told in portions, and that the look after this one
	// tells the next.
	More bool
	// KeepWithin is how soon the nodes that are kept warm have to be kept again; 0: whenever.
	KeepWithin time.Duration
	// Work is what runs now, or waits for nodes that boot for it, and what began or ended
	// since the mark.
	Work []ObservedWork
	// Waiting is the work that waits for anything else.
	Waiting []ObservedWait
	Nodes   []ObservedNode // that are kept warm, as far as they were seen
	Rooms   []ObservedRoom // of all nodes that are up, by type
}

// ObservedRoom is what is free on the nodes of one type that are up.
type ObservedRoom struct {
	Type   string // the provisioner's name, as in a pool
	Idle   int    // nodes that no work is on
	Shared []SharedNodes
}

// ObservedWork is a job or pod that uses GPUs, as its cluster tells of it.
type ObservedWork struct {
	allocation.Work
	Type  string     // the provisioner's name for what it runs on, as in a pool; empty: it has none
	Nodes []WorkNode // at least one
	// StartedAt is when it could use its nodes; zero: it waits for nodes that boot, or
	// ended before it began. EndedAt is zero while it goes on.
	StartedAt, EndedAt time.Time
}

// WorkNode is a part of a piece of work.
type WorkNode struct {
	ProviderID string // of a node that is kept warm there; empty: it is another
	// Name is the cluster's own for the node: by it, one is known again that was kept when
	// the work began and is no more.
	Name string
	GPUs int
}

// ObservedWait is work that waits, and not for a boot.
type ObservedWait struct {
	ID, Type, Reason string
}

// ObservedNode is a node that is kept warm.
type ObservedNode struct {
	ProviderID string
	Taken      string // as of node.Node
}

// Observed counts what an observation changed.
type Observed struct {
	Started, Ended int
	Warm           int // of those that started, they were on nodes that were kept warm
	Claims         int // promises, or parts of them, that were claimed
}

// Add adds what another part of the same observation changed.
func (o *Observed) Add(part Observed) {
	o.Started, o.Ended = o.Started+part.Started, o.Ended+part.Ended
	o.Warm, o.Claims = o.Warm+part.Warm, o.Claims+part.Claims
}

// WorkWaits counts the starts of observed work in a period that waited for one thing.
type WorkWaits struct {
	// Reason is allocation.WaitedBoot for a boot, which a warmer node would have spared;
	// else what the cluster's scheduler let it wait for, before that.
	Reason  string
	Starts  int
	Total   time.Duration // of their waits for it
	Waiting int           // work that waits for it now; 0 where that was not asked
}

// WorkStarts counts starts of observed work, as far as somebody has watched.
type WorkStarts struct {
	Starts, ZeroWaits int
	Waits             []WorkWaits // by reason; Starts is never 0
}
