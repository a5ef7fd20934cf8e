package ledger

import (
	"context"
	"errors"
	"time"
)

// WorkOf is Reader.WorkOn of the actor's node, or ErrDenied if the key with which the daemon came is not the node's any
// more, or the node is over, whatever a server remembers of it.
func WorkOf(r Reader, actor Actor) (NodeWork, error) {
	work, err := r.WorkOn(actor.NodeID)
	if errors.Is(err, ErrNotFound) || err == nil && !work.IsKey(actor.KeyID, r.Now()) {
		return work, ErrDenied
	}
	return work, err
}

// CheckDaemon returns what is known of the daemon of the actor's node, without what it said. The errors are those of
// WorkOf.
func CheckDaemon(ctx context.Context, store Store, actor Actor) (known DaemonState, err error) {
	err = store.Read(ctx, func(r Reader) error {
		work, err := WorkOf(r, actor)
		known = work.DaemonState
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
