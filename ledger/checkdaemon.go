package ledger

import (
	"context"
	"errors"
	"time"
)

// CheckDaemon returns what is known of the daemon of the actor's node, without what it said, or ErrDenied if the key
// with which it came is not the daemon's any more, or the node is over.
func CheckDaemon(ctx context.Context, store Store, actor Actor) (known DaemonState, err error) {
	err = store.Read(ctx, func(r Reader) error {
		work, err := r.WorkOn(actor.NodeID)
		known = work.DaemonState
		if errors.Is(err, ErrNotFound) || err == nil && !known.IsKey(actor.KeyID, r.Now()) {
			return ErrDenied
		}
		return err
	})
	return known, err
}

// IsStillJoined reports whether the daemon of a node is the one that joined at a time, and the node is not over.
func IsStillJoined(ctx context.Context, store Store, nodeID string, joined time.Time) (still bool, err error) {
	err = store.Read(ctx, func(r Reader) error {
		work, err := r.WorkOn(nodeID)
		still = work.Daemon.JoinedAt.Equal(joined) && work.IsKey(work.Daemon.KeyID, r.Now())
		return IgnoreMissing(err)
	})
	return still, err
}
