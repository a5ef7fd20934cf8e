package ledger

import (
	"context"
	"time"
)

// Peer is a server of the installation that the others can reach.
type Peer struct {
	ID      string
	Address string // host:port, for other servers
	Since   time.Time
}

// Peers is the list of the servers that are there. It says whom to ask first, and
// nothing rests on it: whatever two servers do at the same time, the locks of
// their transactions order.
//
// Implementations are safe for concurrent use.
type Peers interface {
	// Attend notes that a server is there for as long as life from now on, and returns
	// all that are, those that have been there longest first. A server that was gone
	// begins anew. Since of p is not read.
	Attend(ctx context.Context, p Peer, life time.Duration) ([]Peer, error)
	// Leave notes that a server is gone. Nothing happens if it is not there.
	Leave(ctx context.Context, id string) error
}
