package provisioners

import (
	"context"
	"errors"
	"time"
)

// Observer is a Provisioner of an observed pool: a cluster whose own scheduler places
// the work of its users, who never hear of us. The port's methods then mean:
//
//   - Create warms one node of the type. It takes into keeping a node that is up
//     and idle where there is one, which is Running at once, and else has a cold
//     one powered up. A node is in keeping once at most.
//   - Get and List tell of the nodes in keeping: Booting while the node powers up,
//     Running when it is up, whatever work is on it.
//   - Delete cools: it ends the keeping and nothing else. The instance is gone at
//     once. Work on the node goes on, and the cluster suspends the node by itself
//     when it has been idle for long enough.
//
// An instance ends without Delete when its node does: a boot that failed, a node that
// went down or was suspended. It never leaves Terminated again; who still wants a
// node warms another one, with another token.
//
// Keeping ends by itself. When nobody calls Keep any more, the cluster suspends the
// nodes after some time, as if nobody had ever kept them, and their instances end.
// That is why an observer needs no Renew.
//
// What an observer does in the cluster for its own ends (heartbeats, placeholders) is
// its own work. It is recognised by its user and its name together, never appears
// in Observation.Work, and never makes a node NodeTaken.
type Observer interface {
	Provisioner
	// Keep keeps the nodes of the instances from being suspended. It may be
	// repeated at any time, and must be within Observation.KeepWithin: the adapter
	// knows what is due, and does nothing for a node that has work. An id that
	// does not exist any more is KindNotFound. Every id is tried; the errors of
	// those that failed are joined, each an *Error whose Scope is the id.
	Keep(ctx context.Context, ids []string) error
	// Observe tells what the nodes of all offers do, and what GPU work was started,
	// waits or ended since the mark of an earlier observation, which may be one of
	// another process. The zero Mark asks for what there is now. Observing changes
	// nothing. A mark that no Observe made is KindBadSpec, because of ErrForeignMark.
	// Of a long past it may tell in portions: each call tells of the next one, moves the
	// Mark over what it told, and is not Complete until the last.
	Observe(ctx context.Context, since Mark) (Observation, error)
}

// Mark is a point in the history of a cluster's work. Only the adapter that made it can
// read it. It is short, and printable.
type Mark string

// ErrForeignMark is the cause of Observe's error for a mark that no Observe made: nobody
// knows until when work was told, and only the zero Mark helps.
var ErrForeignMark = errors.New("no look at this cluster has made the mark")

// Observation is what one look at a cluster has shown.
type Observation struct {
	// At is the time of the look, by the cluster's clock: everything that started
	// or ended before it and after the mark is here, unless Complete is false.
	At   time.Time
	Mark Mark // give it to the next Observe
	// Complete is false when work may have started since the mark, or be there now,
	// that Work does not have, or when nodes may be missing.
	Complete bool
	// Gap is why it is not Complete, where the adapter can say so. It is for operators
	// and never parsed.
	Gap string
	// More says that it is not Complete because a long past is told in portions, and that
	// the next Observe, from Mark on, tells more of it. What hides work in every look, such
	// as a missing right, is no reason to look again at once.
	More bool
	// KeepWithin is the longest time between two calls of Keep that lets no idle
	// node be suspended; 0 means that nodes of this cluster are never suspended.
	KeepWithin time.Duration
	Nodes      []ObservedNode // by name
	// Work is all GPU work that waits or runs, and all that ended since the mark:
	// by ID. One that ended at about the mark may be in two observations.
	Work []Work
}

// NodeState is what a node does, as far as work that might be placed on it is concerned.
type NodeState string

// The states of an observed node.
const (
	NodeCold         NodeState = "cold"          // without power; the cluster powers it up for work
	NodePoweringUp   NodeState = "powering_up"   // may have been given work already, which waits for it
	NodeIdle         NodeState = "idle"          // up, and nothing but our own work is on it
	NodeTaken        NodeState = "taken"         // up, with work of others, which may use no GPU
	NodePoweringDown NodeState = "powering_down" // its next work waits until it is down, and for a boot
	NodeUnavailable  NodeState = "unavailable"   // down, draining or failing: Message says more
)

// ObservedNode is one node of the cluster that can serve at least one offer.
type ObservedNode struct {
	Name string
	// InstanceID is that of the instance that keeps the node; empty: it is not in
	// keeping. Which deployment's it is, List says.
	InstanceID string
	Types      []string // of the offers that the node can serve, sorted
	State      NodeState
	GPUs       int
	// GPUsTaken is how many GPUs work of others holds, which also waits for a node
	// that is powering up. A node can be NodeTaken with none: CPU work sits on it, and
	// work that wants the whole node does not find it free.
	GPUsTaken       int
	CPUs, CPUsTaken int       // CPUsTaken without those of our own work; 0 and 0: not known
	Since           time.Time // when it was last known to change between work and none; zero: not known
	// Message is what an operator must know of a node that is NodeUnavailable: why, and
	// with what command it is brought back. It is shown and never parsed.
	Message string
}

// Reason is why work waits.
type Reason string

// The reasons for waiting. Only WaitBoot could have been spared by a warmer node.
const (
	WaitBoot         Reason = "boot"         // it has been given nodes, and one of them powers up
	WaitResources    Reason = "resources"    // what it wants is in use
	WaitPriority     Reason = "priority"     // other work goes first
	WaitLimits       Reason = "limits"       // a limit of its user, account, queue or quota
	WaitDependencies Reason = "dependencies" // held, or it waits for other work or for a time
	WaitOther        Reason = "other"        // anything else, or the scheduler has not looked at it yet
)

// Work is one piece of work of the cluster's users that has asked for GPUs: a job, one
// task of an array, one component of a heterogeneous job, a pod. The tasks of an array
// may be one piece for as long as none of them has been given a place. It holds no
// text that a user wrote for people to read.
type Work struct {
	// ID is the same in every observation, in every process, and differs for each
	// time that the same job is queued again.
	ID      string
	Account string
	User    string
	Queue   string     // the partition or queue that it was submitted to, or runs in
	Type    string     // of the offer that serves it; empty: none does
	GPUs    int        // of all its nodes, or those it asks for
	Nodes   []WorkNode // what it was given; empty while it waits for a place
	// Namespace is the Kubernetes namespace, or what else the cluster separates
	// tenants by; empty where it does not.
	Namespace string

	SubmittedAt time.Time
	EligibleAt  time.Time // from when it could have started as far as its user is concerned; zero: not known
	// StartedAt is when it could use its nodes; zero: it has not. A boot that
	// it waited for is over by then.
	StartedAt time.Time
	EndedAt   time.Time // zero: it has not
	// Waiting is why it waits; empty once it has started, and of work that
	// ended without starting.
	Waiting Reason
}

// WorkNode is the part of some work that is on one node.
type WorkNode struct {
	Name string
	GPUs int
}

// Wait is how long the work waited for its start, from when it could have started. It is
// false for work that has not started.
func (w Work) Wait() (time.Duration, bool) {
	if w.StartedAt.IsZero() {
		return 0, false
	}
	from := w.SubmittedAt
	if w.EligibleAt.After(from) {
		from = w.EligibleAt
	}
	return max(0, w.StartedAt.Sub(from)), true
}
