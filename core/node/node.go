// Package node is the life of one machine: from the intent to make it to the
// proof that it is gone. Busy, held and idle are not states: they are derived
// from what sits on the node.
package node

import (
	"fmt"
	"time"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/statemachine"
)

// State is where a node is in its life.
type State string

// The states of a node.
const (
	Requested      State = "requested"       // wanted; nothing was asked of the provider
	Provisioning   State = "provisioning"    // the intent and its token are stored; a machine may exist
	Booting        State = "booting"         // the provider's id is known
	Ready          State = "ready"           // proved usable
	Draining       State = "draining"        // takes no new work
	Deprovisioning State = "deprovisioning"  // being removed; billed until proved gone
	Gone           State = "gone"            // the provider said so by id, twice
	Failed         State = "failed"          // the provider refused; no machine was made
	Lost           State = "lost"            // the provider no longer knows it, or it stopped answering
	Quarantined    State = "quarantined"     // takes no work: unhealthy, or kept for inspection
	NeedsAttention State = "needs_attention" // could not be removed so far; retried for ever
)

// Event moves a node from one state to another.
type Event string

// The events of a node.
const (
	Provision   Event = "provision"  // the intent was committed with its token
	Abandon     Event = "abandon"    // not wanted any more before anything was asked
	Boot        Event = "boot"       // the provider made the machine
	Refuse      Event = "refuse"     // the provider refused for good
	BecomeReady Event = "ready"      // the machine proved usable
	Drain       Event = "drain"      // not wanted any more
	Resume      Event = "resume"     // wanted again
	Lose        Event = "lose"       // the provider does not know it
	Quarantine  Event = "quarantine" // it proved unhealthy, or an operator keeps it
	Retire      Event = "retire"     // remove it
	Confirm     Event = "confirm"    // the provider said twice that it is gone
	GiveUp      Event = "give_up"    // removal failed for too long: a person must look
)

// Machine is the transition table of a node.
var Machine = statemachine.Table[State, Event]{
	Name:    "node",
	Initial: []State{Requested},
	States: []State{Requested, Provisioning, Booting, Ready, Draining, Deprovisioning, Gone,
		Failed, Lost, Quarantined, NeedsAttention},
	Transitions: []statemachine.Transition[State, Event]{
		{From: Requested, Event: Provision, To: Provisioning},
		{From: Requested, Event: Abandon, To: Gone},
		{From: Provisioning, Event: Boot, To: Booting},
		{From: Provisioning, Event: Refuse, To: Failed},
		{From: Provisioning, Event: Retire, To: Deprovisioning},
		{From: Booting, Event: BecomeReady, To: Ready},
		{From: Booting, Event: Lose, To: Lost},
		{From: Booting, Event: Retire, To: Deprovisioning},
		{From: Ready, Event: Drain, To: Draining},
		{From: Ready, Event: Lose, To: Lost},
		{From: Ready, Event: Quarantine, To: Quarantined},
		{From: Draining, Event: Resume, To: Ready},
		{From: Draining, Event: Lose, To: Lost},
		{From: Draining, Event: Retire, To: Deprovisioning},
		{From: Lost, Event: Retire, To: Deprovisioning},
		{From: Quarantined, Event: Resume, To: Ready},
		{From: Quarantined, Event: Drain, To: Draining},
		{From: Quarantined, Event: Lose, To: Lost},
		{From: Quarantined, Event: Retire, To: Deprovisioning},
		{From: Deprovisioning, Event: Confirm, To: Gone},
		{From: Deprovisioning, Event: GiveUp, To: NeedsAttention},
		{From: NeedsAttention, Event: Retire, To: Deprovisioning},
		{From: NeedsAttention, Event: Confirm, To: Gone},
	},
}

// Why a node of an observed pool is not free for a promise.
const (
	TakenByWork = "work"        // work of the cluster is on it, which may use no GPU
	TakenAway   = "unavailable" // the cluster gives it no work: it is draining, down or failing
)

// Node is a machine at one moment. Its state changes only through Apply.
type Node struct {
	ID         string
	PoolID     string
	Slot       int    // the place in the pool that this node takes until it is gone
	Generation int    // counts the nodes of a slot: a late answer about an older one is ignored
	Token      string // idempotency token of its creation
	ProviderID string
	Address    string
	Devices    []capacity.Device
	Simulated  bool
	Reason     string // why it is in its state, a code
	// Offering is where its machine comes from, fixed together with the token: all
	// that is asked about it later is asked there, and its price is what it costs.
	Offering capacity.Offering
	// BilledFrom and BilledUntil are the provider's own times of the machine's
	// birth and end; zero while there is none, or it is not known.
	BilledFrom, BilledUntil time.Time
	// ExpiresAt is when the machine ends by itself unless it is renewed; zero:
	// never.
	ExpiresAt time.Time
	// Quarantine is what became of the node's quarantines.
	Quarantine Quarantines
	// Taken is why a promise cannot have the node although it is ready, where a cluster's
	// own scheduler places the work: TakenByWork or TakenAway; empty: it can.
	Taken string
	// Labels are what operators say of the node, for jobs to ask for; nil: nothing.
	Labels map[string]string
	// Taints keep jobs away that do not tolerate each of them, sorted; nil: none.
	Taints []string
	Heat   Heat
	// Isolation is how well it keeps the holders of its GPUs apart, as its daemon says; empty: none has said so.
	Isolation capacity.Isolation

	RequestedAt time.Time
	BootingAt   time.Time
	ReadyAt     time.Time
	IdleSince   time.Time // when the last work on it ended; meaningless while it is in use
	RetiredAt   time.Time
	AbsentAt    time.Time // when the provider first said that it is gone
	GoneAt      time.Time
	Version     int

	state State
}

// New returns a node that is wanted on a slot.
func New(id, poolID string, slot, generation int, now time.Time) Node {
	return Node{ID: id, PoolID: poolID, Slot: slot, Generation: generation, RequestedAt: now, state: Requested}
}

// Restore returns n in a stored state. Only the store calls it.
func Restore(n Node, s State) (Node, error) {
	if !Machine.Known(s) {
		return n, fmt.Errorf("restoring node %s: unknown state %q", n.ID, s)
	}
	n.state = s
	return n, nil
}

// State returns where the node is in its life.
func (n Node) State() State { return n.state }

// Apply returns the node after the event, or a *statemachine.IllegalError. The
// receiver is not changed. reason is a short code that is stored and shown.
func (n Node) Apply(event Event, reason string, now time.Time) (Node, error) {
	to, err := Machine.Next(n.state, event)
	if err != nil {
		return n, err
	}
	n.Quarantine = n.Quarantine.afterMove(n.state, to, now)
	if n.state, n.Reason = to, reason; event == Resume {
		n.Reason = "" // why it was taken out of use holds no more
	}
	switch to {
	case Booting:
		n.BootingAt = now
	case Ready:
		if n.ReadyAt.IsZero() {
			n.ReadyAt = now
		}
		n.IdleSince = now
	case Deprovisioning:
		if n.RetiredAt.IsZero() {
			n.RetiredAt = now
		}
	case Gone, Failed:
		n.GoneAt = now
	}
	return n, nil
}

// Coming reports whether the node is on its way to being usable.
func (n Node) Coming() bool {
	return n.state == Requested || n.state == Provisioning || n.state == Booting
}

// Billed reports whether the provider may be charging for the node.
func (n Node) Billed() bool {
	return n.state != Requested && !Machine.Terminal(n.state)
}
