package auth

import (
	"context"
	"crypto/sha3"
	"fmt"
	"time"

	"github.com/forewarm/forewarm/internal/keys"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/ledger"
)

// NodeCacheFor is how long a good key of a daemon is remembered after the ledger was asked. What a daemon says or asks
// for that has any effect is judged by the ledger once more, so that a key that has ended can do nothing with it.
const NodeCacheFor = 45 * time.Second

// nodeEnvironment is the middle part of what the daemons of nodes come with.
const nodeEnvironment = "node"

// MintNode makes a join token, or a key, of a node's daemon. The whole text is to be shown
// once and kept nowhere.
func (m Minter) MintNode() (ledger.NewSecret, obs.Secret, error) {
	made, err := keys.Mint(nodeEnvironment, m.Random)
	if err != nil {
		return ledger.NewSecret{}, obs.Secret{}, err
	}
	return ledger.NewSecret{ID: made.ID, Hash: []byte(m.Pepper.Hash(made.Secret))}, made.Text, nil
}

// DeriveNode makes the join token of a node's machine. It is the same whenever it is asked for,
// as a repeated request to make the machine has to be.
func (m Minter) DeriveNode(nodeID string, generation int) (ledger.NewSecret, obs.Secret, error) {
	stream := sha3.NewSHAKE256()
	_, _ = stream.Write(m.Pepper.Derive(fmt.Sprintf("join token of node %s, generation %d", nodeID, generation)))
	made, err := keys.Mint(nodeEnvironment, stream)
	if err != nil {
		return ledger.NewSecret{}, obs.Secret{}, err
	}
	return ledger.NewSecret{ID: made.ID, Hash: []byte(m.Pepper.Hash(made.Secret))}, made.Text, nil
}

// lookUpNode looks up what the daemon of a node came with. Its uses are not noted.
func (a *Authenticator) lookUpNode(ctx context.Context, id string, now time.Time) (*remembered, error) {
	c, err := a.ledger.AuthenticateNode(ctx, id)
	if err != nil {
		return nil, err
	}
	return &remembered{key: ledger.Key{ID: id, Hash: c.Hash}, actor: c.Actor(), used: now,
		until: untilAfter(now, c.Expires)}, nil
}

// untilAfter is until when a key of a daemon is remembered that was good at a time, and ends at another; zero: not by
// itself.
func untilAfter(now, ends time.Time) time.Time {
	until := now.Add(NodeCacheFor)
	if !ends.IsZero() && ends.Before(until) {
		return ends
	}
	return until
}

// KeepNode remembers a key of a daemon for longer, which the ledger has just found good until a time.
func (a *Authenticator) KeepNode(keyID string, ends time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if found, ok := a.known[keyID]; ok {
		now := a.clock.Now()
		kept := *found // others read it without the lock
		kept.used, kept.until = now, untilAfter(now, ends)
		a.known[keyID] = &kept
	}
}

// ForgetNode drops what is remembered of the token and keys of a node's daemon, so that what became of them shows at
// once in this process.
func (a *Authenticator) ForgetNode(nodeID string) {
	a.forgetMatching(func(r *remembered) bool { return r.actor.NodeID == nodeID })
}
