package ledger

import (
	"time"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/cost"
	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/quota"
)

// Organization is a tenant: the isolation boundary, the unit of quota and of
// the bill.
type Organization struct {
	ID        string
	Name      string
	Limits    quota.Limits
	CreatedAt time.Time
	DeletedAt time.Time // deleted ones are in no list; read by id they still tell their name
	Version   int
}

// Role is what a person or key may do inside its organization. Operator is
// apart: it administers the installation and is never implied by another role.
type Role string

// The roles, each including the ones before it, and the operator.
const (
	Viewer   Role = "viewer"
	Member   Role = "member"
	Admin    Role = "admin"
	Operator Role = "operator"
)

// User is a person of an organization.
type User struct {
	ID             string
	OrganizationID string
	Email          string
	Role           Role
	Active         bool
	Caps           quota.Caps // of everything that its keys book; zero: none
	CreatedAt      time.Time
	DeletedAt      time.Time // deleted ones are in no list
	Version        int
}

// KeyKind says what holds a key.
type KeyKind string

// The kinds of key.
const (
	PersonKey KeyKind = "person"
	AgentKey  KeyKind = "agent" // may only place and cancel its own reservations, inside its Caps
)

// Key is an API key as stored: the secret itself is nowhere, only its keyed hash.
type Key struct {
	ID             string // also the key's public part
	OrganizationID string // empty for an operator
	UserID         string // the person it acts for, empty for none
	Name           string
	Kind           KeyKind
	Role           Role
	Caps           quota.Caps // always of an AgentKey; of a PersonKey zero means none
	Hash           []byte     // HMAC-SHA-256 of the secret
	PepperVersion  int
	Last4          string
	CreatedBy      string // the key that made it, "system", or empty: see Bootstrap
	// ParentID is the key whose caps, role and end hold for this one too: the one
	// that made it. Empty: it stands for itself, as those do that the installation
	// made, and those that an operator adopted.
	ParentID   string
	CreatedAt  time.Time
	ExpiresAt  time.Time // zero means never
	RevokedAt  time.Time
	LastUsedAt time.Time
	Version    int
}

// Valid reports whether the key may be used at t.
func (k Key) Valid(t time.Time) bool {
	return k.RevokedAt.IsZero() && (k.ExpiresAt.IsZero() || t.Before(k.ExpiresAt))
}

// Pool is a pool's definition and what was learned about it.
type Pool struct {
	capacity.Pool
	learned.Learned
	// Recovery is why the pool only reconciles: see BeginRecovery.
	Recovery  Recovery
	CreatedAt time.Time
	DeletedAt time.Time // deleted ones are in no list and take nothing; read by id they still tell their name
	Revision  int64     // see Change.Revisions; no part of what a version is of
	Changes   int64     // how many transactions have set a revision; the store counts
	// DefinitionVersion counts the changes of the definition alone: what somebody
	// has read and is about to change is not another because a boot was measured.
	DefinitionVersion int
	Version           int
}

// AsPlanned returns the pool as its planner sees it when a node is requested now: with
// the boots and the supply of the source that it would be asked of.
func (p Pool) AsPlanned(now time.Time) Pool {
	_, p.Learned = p.Choose(p.Pool, now.Add(p.Boot.P95()), now)
	return p
}

// AsksAgain returns when a source may be asked for a node again, where none may be
// now because none had any; else the zero time.
func (p Pool) AsksAgain(now time.Time) time.Time {
	var soonest time.Time
	for _, s := range p.Pool.Offerings() {
		until := p.Of(p.Pool, s).BlockedUntil
		if !until.After(now) {
			return time.Time{}
		}
		if soonest.IsZero() || until.Before(soonest) {
			soonest = until
		}
	}
	return soonest
}

// Schedule materialises reservations.
type Schedule struct {
	ID             string
	OrganizationID string
	PoolID         string
	Name           string
	GPUs           int
	Layout         capacity.Layout
	StartLocal     string // first start, local wall time: 2006-01-02T15:04:05
	Timezone       string // IANA name
	RRule          string
	ExDates        []string // local dates that are skipped: 2006-01-02
	Length         time.Duration
	DSTPolicy      string // shift or skip
	Paused         bool
	MadeBy         string
	CreatedAt      time.Time
	DoneUntil      time.Time // occurrences before this are materialised
	DeletedAt      time.Time // deleted ones are in no list
	Version        int
}

// Event is one thing that happened: the journal, the stream and the audit trail
// are the same rows, written in the transaction of the change they tell of.
type Event struct {
	Seq            int64  // set by the store
	OrganizationID string // empty: the installation's
	At             time.Time
	Type           string // subject kind and what became of it: node.ready
	Subject        string
	PoolID         string
	Actor          string // key id, or the part of the system: planner, worker
	Via            string // api, worker, ...
	Reason         string // a code
	Message        string // one sentence for people; numbers and names of ours only
	Decision       []byte // why, to be computed again: see DecisionRecord; nil: nothing was decided
}

// TaskState is where a task row is.
type TaskState string

// The states of a task.
const (
	TaskReady   TaskState = "ready"
	TaskRunning TaskState = "running"
	TaskDone    TaskState = "done"
	TaskDead    TaskState = "dead"
)

// Task is a piece of work that a transaction caused. The row is the outbox, the
// backlog and the record of attempts; queues only carry its id.
type Task struct {
	ID         string
	Kind       string
	Subject    string // id of what it is about
	Key        string // not empty: there is one such row for ever, run again and again
	State      TaskState
	Attempt    int
	RunAt      time.Time
	WakeAt     time.Time // asked for while running: it is to run again then
	Dispatches int
	Fence      int // grows with every claim
	LeaseUntil time.Time
	LastError  string
	Failures   int       // in a row
	FailedAt   time.Time // the last of them; zero: its last run did not fail
	CreatedAt  time.Time
}

// Guard is a worker's right to report on a task: it was claimed under this
// fence. A later claim makes it void.
type Guard struct {
	TaskID string
	Fence  int
}

// Kinds of task.
const (
	TaskPlan       = "pool.plan"   // Subject is a pool
	TaskCreateNode = "node.create" // Subject is a node
	TaskCheckNode  = "node.check"  // is it up yet, is it still there?
	TaskDeleteNode = "node.delete"
	TaskSweep      = "provider.sweep"  // Subject is a provisioner
	TaskObserve    = "cluster.observe" // Subject is a provisioner
	TaskKeep       = "cluster.keep"    // Subject is a provisioner
	TaskSchedules  = "schedule.materialise"
	TaskSeal       = "journal.seal"
)

// Scope says whose rows a query may see. The zero value sees nothing.
type Scope struct {
	OrganizationID string
	All            bool // the installation itself, or an operator
}

// KeyFilter narrows a list of keys.
type KeyFilter struct {
	ValidAt time.Time // only those that may be used then, as all that they rest on may; zero: also those that ended
}

// Page asks for part of a list, ordered by creation.
type Page struct {
	After  string // the last id of the page before, empty for the first
	Limit  int    // at most this many; the store caps it at 500
	Newest bool   // the newest first
}

// Report holds the two numbers that are always shown together, over a period.
type Report struct {
	From, To  time.Time
	Starts    int           // allocations that became active
	ZeroWaits int           // of them, those that waited at most allocation.ZeroWait
	WaitTotal time.Duration // over all starts
	WaitP95   time.Duration
	Waits     []WorkWaits // of observed work among the starts

	// What machines cost. The five costs add up to Costs.Total of the period.
	BusyCost       money.MicroUSD // while somebody held the GPUs
	IdleCost       money.MicroUSD // ready and not held
	BootCost       money.MicroUSD // from birth to ready, and from the start of removal to its end
	MinBillingCost money.MicroUSD // what providers' minimums add to lives that were shorter
	OrphanCost     money.MicroUSD // of machines that no node stood for
	BusyHours      float64        // in GPU-hours
	IdleHours      float64
	BootHours      float64

	// What GPUs did while somebody held them: they did something, or nothing, or nobody
	// looked. The parts add up to BusyCost and BusyHours.
	HeldUsed, HeldIdle, HeldUnobserved cost.Part
}
