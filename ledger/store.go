package ledger

import (
	"context"
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/core/reservation"
)

// Store keeps the truth. There is one implementation, sqlledger, for two
// databases; ledgertest is the suite both must pass.
//
// Implementations are safe for concurrent use.
type Store interface {
	// InTx runs fn in one transaction: either everything fn did is there
	// afterwards or nothing. When the database asks for a retry (serialization
	// failure, deadlock), fn runs again from the start, so it must not have
	// effects of its own. So it does when the connection was lost before the order
	// to commit was sent; afterwards the error is ErrOutcomeUnknown.
	//
	// A row that somebody else holds is waited for a short time, again and again;
	// with a Hurried context once. The error is then ErrBusy. The others that come
	// from the database's state are ErrUnavailable, ErrReadOnly and
	// *StorageFullError.
	InTx(ctx context.Context, fn func(tx Tx) error) error
	// Read runs fn on one consistent snapshot without locks.
	Read(ctx context.Context, fn func(r Reader) error) error
	// Held returns those of the rows that somebody else holds now. It waits for nobody.
	Held(ctx context.Context, r Rows) (Rows, error)
	// Await returns when nobody holds the rows, or ErrBusy when ctx ends before.
	Await(ctx context.Context, r Rows) error
	// TasksDue reports whether Dispatch would find a task, for those who ask many times a
	// second: it takes no lock, no transaction, and writes nothing.
	TasksDue(ctx context.Context) (bool, error)
	// TasksSaved is closed by the next transaction that saves, wakes or ends tasks. Nil: others may, so ask for them.
	TasksSaved() <-chan struct{}
	// Urgent is closed once a change that is urgent was committed, by any process as far as the database tells.
	Urgent() <-chan struct{}
	// Ping reports whether the database answers.
	Ping(ctx context.Context) error
	// CheckWrites writes and commits a row of this process's own, so that it fails
	// for the reasons for which verbs would: no room, read-only, another schema. It
	// is a disk's sync; do not call it more than about once a second.
	CheckWrites(ctx context.Context) error
	// Close frees the connections.
	Close() error
}

// Reader reads. What a scope must not see is ErrNotFound or left out, exactly
// as if it did not exist. Lists are ordered by id, which is by creation, unless
// their page asks for the newest first.
type Reader interface {
	// Now is the database's time: read once per transaction, after its first
	// lock, and the same for the rest of it.
	Now() time.Time

	Organization(s Scope, id string) (Organization, error)
	Organizations(s Scope, p Page) ([]Organization, error)
	// Cohort returns the organizations that share one, ordered by id; the empty
	// name has none.
	Cohort(name string) ([]Organization, error)
	User(s Scope, id string) (User, error)
	Users(s Scope, p Page) ([]User, error)
	Key(s Scope, id string) (Key, error)
	Keys(s Scope, f KeyFilter, p Page) ([]Key, error)
	// OperatorKeys returns the keys of operators that are not revoked, of every
	// organization, whether or not they expired or may still be used.
	OperatorKeys() ([]Key, error)
	// Offspring returns the ids under which is counted what is booked with the
	// keys that a root names, with the keys that descend from them by ParentID, and
	// by the schedules that any of them made, in order.
	Offspring(root KeyRoot) ([]string, error)

	// Names returns what the ids of a kind of thing stand for, of those that are
	// over, too.
	Names(s Scope, n Noun, ids []string) ([]Named, error)
	// FindNamed returns what has a name and is not over: of some kinds several may
	// have the same.
	FindNamed(s Scope, n Noun, name string) ([]Named, error)
	// ListNames returns up to 500 of what is not over.
	ListNames(s Scope, n Noun) ([]Named, error)

	// Pool reads a pool by its id, or by the name of one that is not deleted.
	Pool(idOrName string) (Pool, error)
	Pools(p Page) ([]Pool, error)
	// DeletedPool reads the pool of a name that was deleted last.
	DeletedPool(name string) (Pool, error)
	// PoolState reads a pool with all that is live in it. It takes no lock: without
	// the pool's, it is of one moment only in a snapshot.
	PoolState(id string) (PoolState, error)
	// LiveState is PoolState without Spent, for those who only look at what it returns:
	// others get the same slices. It costs what was written in the pool since this
	// process looked last.
	LiveState(id string) (PoolState, error)
	// PoolStateSince reads a pool and the rows that were written in it since it was
	// as known says, by its Changes and Revision: those that are over, too, and no
	// Spent. False: that cannot be told, or is too much; use PoolState. Like that it
	// takes no lock: without the pool's, read it in a Snapshot.
	PoolStateSince(known Pool) (PoolState, bool, error)
	Node(id string) (node.Node, error)
	// BareNode is Node without its devices, at half the cost.
	BareNode(id string) (node.Node, error)
	Nodes(f NodeFilter, p Page) ([]node.Node, error)
	DaemonReader
	// Generation returns how many nodes a slot has had.
	Generation(poolID string, slot int) (int, error)

	Reservation(s Scope, id string) (reservation.Reservation, error)
	// Reservations and Allocations return, in a snapshot and of what is live, rows that
	// others get as well: they must not be changed.
	Reservations(s Scope, f BookingFilter, p Page) ([]reservation.Reservation, error)
	Allocation(s Scope, id string) (allocation.Allocation, error)
	Allocations(s Scope, f BookingFilter, p Page) ([]allocation.Allocation, error)
	Schedule(s Scope, id string) (Schedule, error)
	Schedules(s Scope, p Page) ([]Schedule, error)
	JobReader
	// ObservedWork returns those of some ids of work that were observed in a pool,
	// whatever became of it.
	ObservedWork(poolID string, work []string) ([]string, error)
	// Commitments adds up what an organization holds, is promised and has spent:
	// what has a place now, and what is over of the windows that started in this
	// UTC month, at what it really held.
	Commitments(organizationID string) (Commitments, error)
	// LiveCommitments is Commitments for those who only look at what it returns: others
	// get the same sums. It costs what was written in the pools since this process looked
	// last.
	LiveCommitments(organizationID string) (Commitments, error)

	// Events returns events after seq, oldest first, none of which may still be
	// overtaken by one with a smaller seq. They come without decision records.
	Events(s Scope, f EventFilter, limit int) ([]Event, error)
	// JournalEnd is the seq of the newest event, settled or not; 0 when there is
	// none.
	JournalEnd() (int64, error)
	// Journal returns events whole, with their decision records: those after seq up
	// to and with last; or, if last is 0, those that none can overtake any more.
	Journal(after, last int64, limit int) ([]Event, error)
	// PepperCheck is what the first start wrote of its pepper; empty: nothing yet.
	PepperCheck() (string, error)
	// LastSeal is the newest seal of the journal; the zero Seal: there is none.
	LastSeal() (Seal, error)
	// Seals returns seals after a number, in order.
	Seals(after int64, limit int) ([]Seal, error)
	// Decisions returns events that carry a decision record, newest first.
	Decisions(s Scope, f DecisionFilter, limit int) ([]Event, error)
	// Preview reads a plan as it was shown.
	Preview(s Scope, id string) (Preview, error)
	// Task reads one task row.
	Task(id string) (Task, error)
	// Pending reports whether a task of the kind for the subject is ready or running.
	Pending(kind, subject string) (bool, error)
	// Tasks counts rows by state.
	Tasks() (map[TaskState]int, error)
	// Failing returns up to 500 tasks that failed so often in a row or oftener, the worst first.
	Failing(atLeast int) ([]Task, error)
	// NextTask is when the first ready task may be dispatched; zero means none.
	NextTask() (time.Time, error)
	// LateSince is when the oldest work was due that nobody does: a ready task, sent
	// to a queue or not, or one whose worker fell silent. It may lie ahead; zero
	// means that nothing waits. working says that a worker holds some task now.
	LateSince() (at time.Time, working bool, err error)
	// Workers returns workers, also those that ended in the last weeks, the one seen last first.
	Workers() ([]Worker, error)
	// Servers returns the servers that are there, those that have been there longest first.
	Servers() ([]Peer, error)
	Report(s Scope, from, to time.Time) (Report, error)
	// WorkStarts counts the starts of observed work in a period, in one pool or, with the
	// empty id, in all.
	WorkStarts(s Scope, poolID string, from, to time.Time) (WorkStarts, error)
	// Costs divides what machines cost in a period. A tenant sees its own lines.
	Costs(s Scope, from, to time.Time) (Costs, error)
	// Orphans returns what is known of machines that no node stood for, ordered
	// by provisioner and id.
	Orphans(f OrphanFilter) ([]Orphan, error)
	// Provisioners returns what workers have reported of theirs, by name.
	Provisioners() ([]Provisioner, error)
	// Watched returns how far a provisioner's cluster was watched; the zero value with
	// its name: never.
	Watched(provisioner string) (Watched, error)
	Replay(owner, route, key string) (Replay, bool, error)
	// HasOldReplays reports whether answers are stored that are an organization's.
	HasOldReplays() (bool, error)
	// Forecasts returns forecasts, the latest recorded first.
	Forecasts(s Scope, f ForecastFilter, limit int) ([]Forecast, error)
	// Calibrations adds up how closed forecasts came out, by source, in order.
	Calibrations(s Scope, f CalibrationFilter) ([]Calibration, error)
	// ForecastCount is how many forecasts a key has added since a time.
	ForecastCount(keyID string, since time.Time) (int, error)
	// Pauses returns every pause of pre-warming that holds now, of all
	// organizations and of the installation, ordered by organization.
	Pauses() ([]Pause, error)
}

// Tx reads and writes. Locks are taken in the order organization, pool, task.
type Tx interface {
	Reader
	// Nested runs fn as a part of this transaction. When fn fails after it wrote
	// something, the whole transaction is lost, whatever its caller does about the
	// error: half of what fn did must not be committed.
	Nested(fn func(tx Tx) error) error
	// Snapshot runs fn on one snapshot of all that others have committed by now. What
	// this transaction wrote may be missing in it.
	Snapshot(fn func(r Reader) error) error
	// Lock holds rows against other verbs: what an organization holds and is
	// promised changes only under its row's lock, and a pool's nodes and bookings
	// only under its pool's. What it returns was read after the last lock, so it
	// is what was committed last. It may be called again with ids that sort after
	// those before, organizations only while no pool is held. ErrNotFound names
	// what is missing.
	Lock(o LockRequest) (Locked, error)
	// Assume is Lock for who remembers what it would answer. Nothing is asked; the
	// first Save locks the rows, and is ErrStale, with nothing written, unless
	// everything is still as assumed and Now was right within a fraction of a second.
	// False means that the store cannot do this now: use Lock.
	Assume(a Assumption) bool
	// Save writes a change. A row whose version is not the one that was read is
	// ErrConflict; a name that is taken is ErrTaken; ErrFenced means that the guard of
	// a run that is finished is void.
	Save(c Change) error
	// Wake pulls a keyed task forward to at, if it would run later.
	Wake(key string, at time.Time) error
	// ClaimTask gives the caller a ready task's attempt for the lease, under a new fence.
	ClaimTask(id string, attempt int, lease time.Duration) (Task, error)
	// HoldProvisioner writes a hold unless another holder has one that is not over,
	// and returns the hold that counts now.
	HoldProvisioner(h ProvisionerHold) (ProvisionerHold, error)
	// NoteWorker notes that a worker is there for as long as life from now on.
	NoteWorker(w Worker, life time.Duration) error
	// Extend prolongs a guarded lease.
	Extend(g Guard, lease time.Duration) error
	// Dispatch marks up to limit ready, due tasks as sent, not to be sent again
	// within window, and returns them.
	Dispatch(limit int, window time.Duration) ([]Task, error)
	// Reap makes running tasks whose lease has ended ready again and returns
	// how many there were.
	Reap() (int, error)
}

// LockRequest says which rows a transaction is about, sorted by id: organizations
// are locked before pools, each in that order, so that no two wait in a circle.
type LockRequest struct {
	Organizations []string
	Pools         []string
	Replays       []ReplayKey // stored answers to look for; nothing is locked
	// Known are some of the pools, as the caller has them. Their changes since are
	// read with them.
	Known []Pool
	// Patience is how long this transaction waits for each lock from now on; zero:
	// as long as the store always does.
	Patience time.Duration
}

// Rows names rows that verbs hold, by id. With a pool goes the row of its plan's
// task, which every verb that changes the pool writes.
type Rows struct {
	Organizations []string
	Pools         []string
}

// Add names those of a LockRequest too.
func (r *Rows) Add(o LockRequest) {
	r.Organizations = append(r.Organizations, o.Organizations...)
	r.Pools = append(r.Pools, o.Pools...)
}

// hurried is the key of contexts in which nobody waits long for a lock.
type hurried struct{}

// Hurried returns a context with which InTx does not try again when a row is
// held: for who can wait better elsewhere.
func Hurried(ctx context.Context) context.Context { return context.WithValue(ctx, hurried{}, true) }

// IsHurried reports whether ctx comes from Hurried.
func IsHurried(ctx context.Context) bool { return ctx.Value(hurried{}) != nil }

// PlanKey is the key of the task that plans a pool.
func PlanKey(poolID string) string { return "plan:" + poolID }

// ReplayKey names the stored answer to a request.
type ReplayKey struct {
	Owner string // see Once.ReplayKey
	Route string
	Key   string
}

// Locked is what a LockRequest locked, as it was read under the locks.
type Locked struct {
	Organizations []Organization
	Pools         []Pool
	Revisions     map[string]int64 // of every pool there is
	Replays       []Replay         // those that were found
	// Since is what PoolStateSince answers for the known pools: none for those of
	// which it cannot be told.
	Since map[string]PoolState
}

// Assumption is what a LockRequest is thought to answer, but for stored answers:
// they are thought not to be there, and Save is ErrTaken when they are.
type Assumption struct {
	Organizations []Organization   // to be locked, sorted by id, in the versions remembered
	Pools         []string         // to be locked, sorted
	Revisions     map[string]int64 // of every pool there is
	// NotBefore is when what is remembered was read or written last. An estimate of
	// Now that lies before it is wrong, however little.
	NotBefore time.Time
}

// PoolState is a pool, all that is live in it, and what the rest has spent.
type PoolState struct {
	Pool         Pool
	Nodes        []node.Node
	Reservations []reservation.Reservation
	Allocations  []allocation.Allocation
	Spent        []Spend
	Uses         []PoolUse // ordered by account

	booked *bookedOnce // see Shared
}

// Spend is the sum over reservations or allocations that are over, of one
// organization, key and class, in windows that started on one UTC day.
type Spend struct {
	OrganizationID string
	MadeBy         string            // the key that made or held them
	UserID         string            // the person whose key it was; empty: none
	Class          reservation.Class // empty: allocations
	Day            time.Time         // not before the UTC month in which it was read
	Cost           money.MicroUSD
	GPUSeconds     int64 // whole seconds of each, times its GPUs
}

// Snapshot is the pool as the planner sees it.
func (s PoolState) Snapshot() plan.Snapshot {
	return plan.Snapshot{
		Pool: s.Pool.Pool, Learned: s.Pool.Learned, Billing: plan.Billing{Minimum: s.Pool.MinBilling},
		Nodes: s.Nodes, Reservations: s.Reservations, Allocations: s.Allocations,
	}
}

// Commitments are an organization's, whole and by part.
type Commitments struct {
	All         quota.Commitments
	Speculative quota.Commitments             // speculative reservations
	ByKey       map[string]*quota.Commitments // by the key or schedule that made or holds them
	ByUser      map[string]*quota.Commitments // by the person whose key it is
}

// NodeFilter narrows a list of nodes. Zero fields do not narrow.
type NodeFilter struct {
	PoolID      string
	Provisioner string
	State       []node.State
	Live        bool    // nothing that is over
	Places      []Place // only on these slots
}

// KeyRoot names a key or a person with all of their keys; exactly one is set.
type KeyRoot struct {
	KeyID  string
	UserID string
}

// OrphanFilter narrows a list of orphans. Zero fields do not narrow.
type OrphanFilter struct {
	Provisioner string
	Billed      bool // only those that are still billed
}

// BookingFilter narrows a list of reservations or allocations. Zero fields do
// not narrow.
type BookingFilter struct {
	PoolID string
	State  []string
	MadeBy string // the key or schedule that made a reservation, or the key that holds an allocation
	UserID string // whose key or schedule it was
	Name   string
	Live   bool
	// Since and Until bound the time that a booking has to do with: of a
	// reservation its window, of an allocation from its request to its end.
	Since, Until time.Time
}

// EventFilter narrows a list of events. Zero fields do not narrow.
type EventFilter struct {
	After   int64
	Subject string
	Type    string // prefix
}
