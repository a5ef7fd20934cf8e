package ledger

import (
	"time"

	"github.com/forewarm/forewarm/core/activity"
	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/node"
)

// Daemon is by what the daemon of a node proves who it is. Of tokens and keys only the
// public ids and the keyed hashes of their secrets are stored.
type Daemon struct {
	NodeID     string
	Generation int // of the node for which the token was made

	TokenID      string // empty: none was made
	TokenHash    []byte
	TokenExpires time.Time
	TokenUsed    time.Time // zero: it may still be used

	KeyID       string // empty: it never joined
	KeyHash     []byte
	KeyExpires  time.Time
	OldKeyID    string // the key before; valid until OldKeyUntil
	OldKeyHash  []byte
	OldKeyUntil time.Time

	BootID   string // of the machine, as it was when the daemon joined
	JoinedAt time.Time
	// Clears counts how often an operator cleared what the daemon says of its GPUs: what
	// it says with an older count is of before.
	Clears    int
	RefusedAt time.Time // when a refusal was last journalled
	Version   int
}

// Presence is what the daemon of a node said last. It is replaced, not kept.
type Presence struct {
	NodeID  string
	SeenAt  time.Time // by the database's clock
	BootID  string    // of the machine then
	Epoch   int64     // of the daemon that said it, within the boot
	Program string    // its version
	Look    []byte    // JSON, as it sent it
	// Activity are the last stretches of the GPUs of which it tells what they do. They reach
	// to SeenAt.
	Activity []activity.Open
}

// How long nothing may come from the daemon of a node before no job starts there.
const (
	SilentAfter = 2 * time.Minute
	// JoinWithin is how long a node may be ready before its daemon has joined, where one is started with it.
	JoinWithin = 10 * time.Minute
)

// IsSilent reports whether no daemon would start a job on a node now, by when its daemon said something last; the zero
// time: it never did.
func IsSilent(n node.Node, seen, now time.Time) bool {
	switch {
	case n.State() != node.Ready:
		return false
	case seen.IsZero():
		return now.Sub(n.ReadyAt) > JoinWithin
	}
	return now.Sub(seen) > SilentAfter
}

// TellSilence says since when the daemon of a node has been silent.
func TellSilence(nodeID string, seen, now time.Time) string {
	return "the daemon of node " + nodeID + " has been silent since " + FormatTimeSeen(seen, now)
}

// FixSilence is what somebody can do where daemons are silent.
func FixSilence(who Actor) string {
	if who.Role == Operator {
		return "start forewarm-node there, see: forewarm nodes join --help"
	}
	return "ask an operator to start forewarm-node there again"
}

// GPUStretch is a stretch of a GPU of a node that is over.
type GPUStretch struct {
	NodeID string
	activity.Stretch
}

// DaemonState is what is known of a node and its daemon.
type DaemonState struct {
	Daemon Daemon
	Node   node.Node // without its devices
	Said   Presence  // the zero value: nothing, or it was not read
	// MinDriver is what the node's pool asks for; empty: nothing, or it was not read.
	MinDriver capacity.Driver
}

// IsKey reports whether a key is the daemon's at a time, on a node that is not over.
func (s DaemonState) IsKey(keyID string, at time.Time) bool {
	n, d := s.Node, s.Daemon
	if node.Machine.Terminal(n.State()) || n.Generation != d.Generation {
		return false
	}
	return keyID == d.KeyID && at.Before(d.KeyExpires) || keyID == d.OldKeyID && at.Before(d.OldKeyUntil)
}

// KeyEnds is when a key of the daemon ends.
func (d Daemon) KeyEnds(keyID string) time.Time {
	if keyID == d.OldKeyID {
		return d.OldKeyUntil
	}
	return d.KeyExpires
}

// NodeWork is what a daemon's report of its work is judged by, and compared with.
type NodeWork struct {
	DaemonState
	Pool  Pool
	Ranks []job.Rank
}

// DaemonReader reads what is known of the daemons of nodes.
type DaemonReader interface {
	// Holders returns of which organizations allocations are, or were, by id, of those that there are.
	Holders(ids []string) (map[string]string, error)
	// AllocationsByID returns those of some allocations that there are, without their devices.
	AllocationsByID(ids []string) ([]allocation.Allocation, error)
	// AllocationsOn returns those that have GPUs of a node now, without their devices.
	AllocationsOn(nodeID string) ([]allocation.Allocation, error)
	// DaemonState reads at once what a report of the daemon of a node is judged by: ErrNotFound if there is no such
	// node, or no token was ever made for it.
	DaemonState(nodeID string) (DaemonState, error)
	// WorkOn reads at once the daemon of a node, its pool, and the ranks there that have not ended. What the daemon said
	// is not read. The errors are those of DaemonState.
	WorkOn(nodeID string) (NodeWork, error)
	// Daemon returns what is known of the daemon of a node: ErrNotFound if no token was
	// ever made for it.
	Daemon(nodeID string) (Daemon, error)
	// DaemonByKey returns the daemon that has, or had last, a token or key of an id.
	DaemonByKey(id string) (Daemon, error)
	// Presence returns what the daemon of a node said last, or ErrNotFound.
	Presence(nodeID string) (Presence, error)
	// Presences returns what daemons said after a time, oldest first.
	Presences(after time.Time) ([]Presence, error)
	// PresencesOf returns what the daemons of some nodes said last, by node; of those that
	// never did nothing.
	PresencesOf(nodeIDs []string) (map[string]Presence, error)
	// DaemonsSeen returns when the daemons of some nodes said something last, by node: it costs a part of PresencesOf.
	DaemonsSeen(nodeIDs []string) (map[string]time.Time, error)
	// GPUStretches returns, by node, what the GPUs of some nodes did, each node's in a period of its own, as far as they
	// were looked at: those stretches that are open reach to the last look. Those of a GPU are in the order of time.
	GPUStretches(during map[string]calendar.Interval) (map[string][]activity.Stretch, error)
}

// The kinds of key with which the daemon of a node comes. They are in no list of keys.
const (
	NodeKey   KeyKind = "node"       // may only report for its own node
	JoinToken KeyKind = "join_token" // may only join its own node, once
)

// How long what daemons come with works.
const (
	MostTokenLife = 15 * time.Minute
	NodeKeyLife   = 24 * time.Hour
	// ProvidedTokenLife is of a token that a machine is made with, which has to boot first.
	ProvidedTokenLife = 2 * time.Hour
	// OldKeyLife is how long the key before works on: its holder may not have got the
	// answer that brought the new one.
	OldKeyLife = 2 * time.Minute
)

// NodeCredential is a token or key of a node's daemon, as it was looked up.
type NodeCredential struct {
	Daemon
	Kind    KeyKind
	Hash    []byte    // of its secret
	Expires time.Time // zero: the verb that it is for judges it
}

// Actor is who the credential speaks for: nobody but the daemon of its node.
func (c NodeCredential) Actor() Actor {
	id := c.KeyID
	if c.Kind == JoinToken {
		id = c.TokenID
	}
	return Actor{KeyID: id, Kind: c.Kind, NodeID: c.NodeID, ExpiresAt: c.Expires, Via: "node"}
}

// NewSecret is a token or key that was made: its id and the hash of its secret.
type NewSecret struct {
	ID   string
	Hash []byte
}

// Joining is what a daemon says of itself when it joins.
type Joining struct {
	BootID string
	Key    NewSecret
}

// Beat is one report of a daemon, as far as the ledger keeps it.
type Beat struct {
	BootID  string
	Epoch   int64
	Program string
	Clears  int
	Look    []byte
	// Activity is what its GPUs did since the beat before that was recorded.
	Activity []activity.Look
	// Unhealthy are the GPUs that must not be handed out, for the quarantine of their node.
	Unhealthy []UnhealthyGPU
	Driver    capacity.Driver // of real GPUs; empty: it is not known, or the figures are simulated
	Celsius   int             // of the hottest GPU; 0: it is not known
	// Isolation is how well the node keeps holders apart; what is none of them: it does not say.
	Isolation capacity.Isolation
}

// UnhealthyGPU is a GPU with what its node's daemon found against it.
type UnhealthyGPU struct {
	UUID    string
	Finding string // names the GPU, for people
}

// Why the daemon of a node is refused.
const (
	RefusedTokenUsed    = "token_used"
	RefusedTokenExpired = "token_expired"
	RefusedOtherBoot    = "other_boot"
	RefusedSuperseded   = "superseded"
	RefusedNodeOver     = "node_over"
)

// DaemonRefusedError says that a daemon was not believed. It is in the journal.
type DaemonRefusedError struct {
	NodeID string
	Reason string // one of the Refused… codes
}

// Error says why.
func (e *DaemonRefusedError) Error() string {
	return "the daemon of node " + e.NodeID + " is refused: " + refusals[e.Reason]
}

var refusals = map[string]string{
	RefusedTokenUsed:    "its join token was used before",
	RefusedTokenExpired: "its join token has expired",
	RefusedOtherBoot:    "its machine has booted since it joined, or its identity was copied to another machine",
	RefusedSuperseded:   "another daemon of the same machine began later",
	RefusedNodeOver:     "the node is over, or was made anew since",
}
