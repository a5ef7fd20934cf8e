package ledger

import (
	"errors"
	"fmt"
	"time"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/quota"
)

// FirstStart is what the start of an installation makes.
type FirstStart struct {
	Organization string // its first
	Limits       quota.Limits
	Operator     Key // of an installation that has no key
	Pools        []NewPool
}

// NewPool is a pool that is made unless its name is there; prior is what its
// provisioner says of its boots.
type NewPool struct {
	Definition capacity.Pool
	Prior      learned.BootTimes
}

// Started is what a FirstStart made.
type Started struct {
	FirstKey bool
	Pools    []StartedPool // those that were declared, in their order
}

// StartedPool is a declared pool and what became of it.
type StartedPool struct {
	Name string
	Made bool
	// DeletedAt is when the last pool of the name was deleted that is made again;
	// zero: there was none.
	DeletedAt time.Time
}

// PoolError says which of the pools of a FirstStart could not be made.
type PoolError struct {
	Index int
	Err   error
}

// Error names the pool's place and what is wrong with it.
func (e *PoolError) Error() string { return fmt.Sprintf("making pool %d: %v", e.Index+1, e.Err) }

// Unwrap returns what is wrong with it.
func (e *PoolError) Unwrap() error { return e.Err }

// ErrOtherPepper means that the ledger's pepper is not the one that the
// installation was made with. None of the keys that are there would be known.
var ErrOtherPepper = errors.New("the keys here were made with another pepper")
