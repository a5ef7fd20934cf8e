// Package provisioners is the port between the control plane and the systems
// that make machines: a simulation, this host, a cluster, a cloud.
//
// The contract exists because every comparable system that wrote a machine's id
// only after the call that made it has leaked machines. The control plane
// commits an intent with a token before it calls Create, repeats any call whose
// answer it did not get, and believes that a machine is gone only when it is
// told so by id, twice. An adapter must make that safe:
//
//   - Create is repeatable: the same token never makes a second machine.
//   - Absence needs proof: List says whether it is complete, and Get of an
//     unknown id answers KindNotFound only when the provider itself said so.
//   - Delete is repeatable from every state until Get answers KindNotFound.
//   - Errors carry the caller's choice (see Kind); when an adapter cannot tell
//     whether a machine was made, it must answer KindUnknown.
//   - Every machine carries the owner tag of its deployment, and List returns
//     only machines with the asked tag: two deployments in one account never
//     touch each other.
//
// An adapter is a folder beside this file, a Config with Validate, a line in
// provisioners/builtin, and a test that runs provisionertest.Run. README.md
// beside this file is the checklist.
package provisioners

import (
	"context"
	"time"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/money"
)

// Provisioner makes, finds and removes machines. Implementations are safe for
// concurrent use, honour the context's end, and hold no state that a restart
// may not lose.
type Provisioner interface {
	// Name is the configured name of this provisioner, unique in a deployment.
	Name() string
	// Offers lists the machine types that can be asked for. The answer may be
	// old by the time it is used: Create decides.
	Offers(ctx context.Context) ([]Offer, error)
	// Create asks for one machine and returns without waiting for its boot.
	// Repeating a call with the same token and spec returns the same machine,
	// also after it became Running, and the ended machine (Terminating or
	// Terminated) after it was deleted: a late duplicate of a call must not make
	// a machine that nobody wants any more. An adapter remembers a token for at
	// least 24 hours after its machine's end. The same token with another spec
	// is KindBadSpec. After KindCapacity, KindQuota, KindBadSpec and KindDenied no
	// machine exists for the token; after KindUnknown one may.
	Create(ctx context.Context, token string, spec Spec) (Instance, error)
	// Get returns one machine by the provider's id. KindNotFound means the
	// provider knows no such machine; a machine that was deleted may also be
	// returned as Terminated for a while.
	Get(ctx context.Context, id string) (Instance, error)
	// List returns the machines that carry the owner tag, whatever their state.
	// Only a List with Complete set may be used to conclude that a machine does
	// not exist, and only of machines older than the provider's delay: Complete
	// speaks of pages and rows, not of freshness.
	List(ctx context.Context, owner string) (List, error)
	// Delete asks for the machine's end and returns without waiting for it. A
	// machine that is already gone is not an error.
	Delete(ctx context.Context, id string) error
}

// Renewer is a Provisioner whose machines carry a dead-man switch: one that was
// made with Spec.ExpiresAt ends by itself at that time, once nothing runs on it,
// unless the time is moved. A control plane that is dead for good then cannot
// leave machines that are billed for ever. An adapter that cannot keep that
// promise must not have the method.
type Renewer interface {
	// Renew moves the machine's end to until; an earlier one than it has changes
	// nothing. KindNotFound means that the machine is gone.
	Renew(ctx context.Context, id string, until time.Time) error
}

// Exclusive is a Provisioner that serves one worker at a time: what it knows of its
// machines is in that worker's process or data directory, so that a second one of
// the same name would make machines twice, or end what the first has made.
type Exclusive interface {
	// Exclusive does nothing: having it is what counts.
	Exclusive()
}

// Offer is one machine type that a provisioner can make.
type Offer struct {
	Type       string // the provisioner's name for it, as in Spec.Type
	Region     string
	Model      string
	GPUs       int
	MemoryMiB  int // of one GPU
	Price      money.MicroUSD
	MinBilling time.Duration // the shortest time that is billed
	Boot       Boot
	// Interruptible machines may be taken back by the provider at any time.
	// Notice is how long before that it says so (Instance.Notice); 0 means not
	// at all.
	Interruptible bool
	Notice        time.Duration
	// From and Until bound when its machines can be used, where the supply was
	// bought for a window; a zero time is no bound. Until is the usable end, which
	// may be well before the end that is billed.
	From, Until time.Time
	Simulated   bool
	// Observed offers are of clusters whose own scheduler places the work: their pools
	// are observed ones.
	Observed bool
}

// Boot is a provisioner's prior for the time from Create to a proved ready
// machine. The control plane learns the real one.
type Boot struct {
	P50, P95 time.Duration
}

// Spec says what machine to make and for whom.
type Spec struct {
	Type   string
	Region string
	Owner  string // deployment tag: List finds by it
	NodeID string // the control plane's node, a tag of the machine
	// ExpiresAt is when the machine ends by itself unless it is renewed. Zero, or
	// an adapter that is no Renewer: never. It is not what a token stands for: a
	// repeated Create with another ExpiresAt answers the same machine.
	ExpiresAt time.Time
	// Daemon is for a DaemonStarter that asks for it. It, too, is not what a token stands for,
	// and no state file has it.
	Daemon Daemon `json:"-"`
}

// Identity returns the spec without what may differ between two calls that ask for
// the same machine. An adapter compares the identity of a repeated call with that of
// the token's first one.
func (s Spec) Identity() Spec {
	s.ExpiresAt, s.Daemon = time.Time{}, Daemon{}
	return s
}

// Phase is a machine's life as its provider sees it.
type Phase string

// The phases of a machine.
const (
	Booting     Phase = "booting"     // exists, is billed, cannot be used
	Running     Phase = "running"     // can be used; Devices is filled
	Terminating Phase = "terminating" // is on its way out, may still be billed
	Terminated  Phase = "terminated"  // is gone; the provider still remembers it
)

// Instance is one machine.
type Instance struct {
	ID     string // the provider's id
	Token  string // the token it was created with
	Owner  string
	NodeID string
	Type   string
	Phase  Phase
	// Address is where it can be reached, and how its holder gets in, as package
	// core/access writes it; empty while Booting.
	Address   string
	Devices   []capacity.Device
	CreatedAt time.Time // the provider's time of birth, from which it is billed
	EndedAt   time.Time // until when it is billed; zero while it stands, or where the provider does not say
	// Preempted says of a machine that is over that its provider took it back for
	// somebody else.
	Preempted bool
	// CheckWithin is how soon the provider wants a running machine looked at again,
	// where it may go at any moment; zero: whenever.
	CheckWithin time.Duration
	// Notice is what the provider announces for the machine, or, of an observer's whose
	// node failed, why it is over; nil for nothing.
	Notice    *Notice
	Simulated bool
}

// Notice is an announcement about a machine that still runs.
type Notice struct {
	Kind    NoticeKind
	At      time.Time // when it comes true; zero where the provider does not say
	Message string    // the provider's own words, shown to operators and never parsed
}

// NoticeKind sorts announcements by what comes of them.
type NoticeKind string

// The kinds of announcement.
const (
	NoticeInterruption NoticeKind = "interruption" // the provider takes the machine back at Notice.At
	NoticeExpiring     NoticeKind = "expiring"     // the supply that it belongs to ends at Notice.At
	NoticeDegraded     NoticeKind = "degraded"     // it runs, and is failing or to be moved
)

// List is one answer of Provisioner.List.
type List struct {
	Instances []Instance
	// Complete says that every page was read and every row was understood.
	Complete bool
}
