package ledger

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/capacity"
)

// NotHolderError says that a key with caps asked for more of a lease that does not
// count for them.
type NotHolderError struct{ Allocation string }

// Error names the lease.
func (e *NotHolderError) Error() string {
	return fmt.Sprintf("%s is held by another key: extending it would not count for the caps of this one", e.Allocation)
}

// Errors that a caller chooses by. Everything else is a fault.
var (
	// ErrNotFound: there is no such row, or the caller must not know of it.
	ErrNotFound = errors.New("not found")
	// ErrConflict: the row changed since it was read.
	ErrConflict = errors.New("changed meanwhile")
	// ErrStale: what a transaction assumed is not so any more; see Tx.Assume.
	ErrStale = errors.New("what was assumed has changed")
	// ErrTaken: a row with that name exists.
	ErrTaken = errors.New("name is taken")
	// ErrFenced: the task was claimed by somebody else, or is over.
	ErrFenced = errors.New("no longer the holder of this task")
	// ErrDenied: the actor may not do this.
	ErrDenied = errors.New("not allowed")
	// ErrRecovering: the pool only reconciles, until an operator has confirmed
	// what it found; see BeginRecovery.
	ErrRecovering = errors.New("only reconciles until an operator confirms")
	// ErrBusy: somebody else holds a row that is needed, and went on holding it.
	// Nothing was changed.
	ErrBusy = errors.New("held by somebody else")
	// ErrUnavailable: the database does not answer. Nothing was changed.
	ErrUnavailable = errors.New("the database does not answer")
	// ErrReadOnly: the database answers, but takes no writes: a standby, or a file
	// that may not be written. Nothing was changed.
	ErrReadOnly = errors.New("the database takes no writes")
	// ErrOutcomeUnknown: the database was lost between the order to commit and the
	// answer. What was asked took effect whole, or not at all.
	ErrOutcomeUnknown = errors.New("whether it was committed is not known")
	// ErrNotTried: those before it in its batch took all the time that a batch has.
	ErrNotTried = errors.New("the batch ran out of time before it was tried")
	// ErrKeyReused: an idempotency key came again with another request.
	ErrKeyReused = errors.New("idempotency key was used for another request")
	// ErrKeyExpired: an idempotency key was made before the oldest answer that is
	// kept.
	ErrKeyExpired = errors.New("idempotency key is older than the answers that are kept")
)

// RefusedError says that a request got no place, with every blocker and what
// would be accepted instead.
type RefusedError struct {
	Pool     string
	PerNode  int
	Decision admission.Decision
	// DecisionID is what the refusal is called in the journal; empty for a
	// dry run, which leaves nothing there, and for one of very many, of which
	// only the number is told.
	DecisionID string
	Others     []PoolRefusal // the other pools that might have served, and could not
	// Closed are nodes of the pool that take no new work though their GPUs may be free.
	Closed []ClosedNodes
	// What is what was asked for: a reservation, an allocation, a schedule, a job, or the extension of a lease.
	What string

	Leaves *Event // in the journal, whatever becomes of the rest of the verb
}

// RefusedExtension is what was asked for of RefusedError, where an allocation is there already.
const RefusedExtension = "extension"

// ClosedNodes are so many nodes that take no new work, in a state.
type ClosedNodes struct {
	State string
	Nodes int
}

// PoolRefusal says why a pool could not serve.
type PoolRefusal struct {
	Pool    string // its name
	Message string
}

// Error names the first blocker; the rest is in Decision.
func (e *RefusedError) Error() string {
	if len(e.Decision.Reasons) == 0 {
		return "refused"
	}
	return e.Decision.Reasons[0].Message
}

// ObservedPoolError says that GPUs were asked for, or a lease was to be changed, in a pool
// where a cluster's own scheduler places the work.
type ObservedPoolError struct {
	Pool  string // its name
	Asked string
}

// Error names the pool and the way.
func (e *ObservedPoolError) Error() string {
	return fmt.Sprintf("in pool %s the cluster's own scheduler places the work: cannot %s here; submit the job to the "+
		"cluster, or end it there", e.Pool, e.Asked)
}

// SharedNodeError says that work of another organization is on a node that does not keep the
// two apart as well as its pool asks for.
type SharedNodeError struct {
	NodeID    string
	Isolation capacity.Isolation // of the node; empty: it is not known
	Least     capacity.Isolation // that the pool asks for
}

// Error names the node, and what it lacks.
func (e *SharedNodeError) Error() string {
	return fmt.Sprintf("another organization's work is on node %s, whose isolation is %s, and the pool asks for %s where "+
		"two share a node", e.NodeID, cmp.Or(e.Isolation, "not known"), cmp.Or(e.Least, capacity.IsolationUser))
}

// TakenError says that a name is taken, and by what. It is an ErrTaken.
type TakenError struct {
	Noun Noun
	ID   string
	Name string
}

// Error names the other.
func (e *TakenError) Error() string { return fmt.Sprintf("%s %s is named %q", e.Noun, e.ID, e.Name) }

// Unwrap returns ErrTaken.
func (e *TakenError) Unwrap() error { return ErrTaken }

// StorageFullError says that there is no room to write, or that the disk fails.
// Nothing was changed; reading goes on.
type StorageFullError struct {
	Where string // the file, or the server, whose disk it is
	Err   error
}

// Error names the place.
func (e *StorageFullError) Error() string {
	return fmt.Sprintf("no room to write at %s: %v", e.Where, e.Err)
}

// Unwrap returns what the database said.
func (e *StorageFullError) Unwrap() error { return e.Err }

// SchemaError says that the tables are not those of this program.
type SchemaError struct{ Have, Want int64 } // numbers of the last migration

// Error names both and the way out.
func (e *SchemaError) Error() string {
	return fmt.Sprintf("the database has schema %d and this program needs %d: run forewarm migrate, with the newer "+
		"of the two programs", e.Have, e.Want)
}

// InvalidError says that a value in a request can never be right.
type InvalidError struct {
	Field string
	Rule  string // what it must be, as a sentence for the caller
	Fix   string // what to do instead, as an instruction; optional
	// Allowed is all that the field could have been, where that is a few names.
	Allowed []string
	// Missing is what the field names and is not there; nil: something else is
	// wrong with it.
	Missing *Missing
}

// Error names the field and the rule.
func (e *InvalidError) Error() string { return fmt.Sprintf("%s %s", e.Field, e.Rule) }

// StateError says that something is in the wrong state for what was asked.
type StateError struct {
	Subject string
	State   string
	Asked   string
	Fix     string // what can be done instead; empty: nothing that is known here
	Command string // which does that; empty: none
}

// Error names the subject, its state and what was asked.
func (e *StateError) Error() string {
	return fmt.Sprintf("%s is %s: cannot %s", e.Subject, e.State, e.Asked)
}
