package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/plan"
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
	Prior      plan.BootTimes
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

// Start makes all of a FirstStart that is not there yet, or, when any of it
// cannot be made, nothing: a key that is stored is one with which the
// installation works. A pool that was deleted is made again as long as it is
// declared. ErrOtherPepper: the installation was made with another one.
func (l Tenancy) Start(ctx context.Context, s FirstStart) (Started, error) {
	var out Started
	err := submitTx(l.engine, &pendingTx{ctx: ctx, fn: func(ctx context.Context, tx *groupTx) error {
		if err := samePepper(l.engine, tx.port); err != nil {
			return err
		}
		tx.change.PepperCheck = l.cfg.PepperCheck
		out = Started{}
		bound := tx.boundLedger()
		var err error
		if out.FirstKey, err = bound.Bootstrap(ctx, s.Organization, s.Limits, s.Operator); err != nil {
			return err
		}
		for i, p := range s.Pools {
			started, err := startPool(ctx, bound, tx, p)
			if err != nil {
				return &PoolError{Index: i, Err: err}
			}
			out.Pools = append(out.Pools, started)
		}
		return nil
	}})
	if err != nil {
		return Started{}, err
	}
	return out, nil
}

// startPool makes a declared pool unless its name is there.
func startPool(ctx context.Context, bound *Ledger, tx *groupTx, p NewPool) (StartedPool, error) {
	out := StartedPool{Name: p.Definition.Name}
	if _, err := tx.port.Pool(out.Name); !errors.Is(err, ErrNotFound) {
		return out, err
	}
	gone, err := tx.port.DeletedPool(out.Name)
	if ignoreMissing(err) != nil {
		return out, fmt.Errorf("looking for a deleted pool of that name: %w", err)
	}
	out.Made, out.DeletedAt = true, gone.DeletedAt
	_, err = bound.CreatePool(ctx, SystemActor("config"), p.Definition, p.Prior)
	return out, err
}

// ErrOtherPepper means that the ledger's pepper is not the one that the
// installation was made with. None of the keys that are there would be known.
var ErrOtherPepper = errors.New("the keys here were made with another pepper")

// CheckPepper compares the pepper with that of the first start, and the key of
// the journal's newest seal, which is made from it, with the ledger's own.
func (l Tenancy) CheckPepper(ctx context.Context) error {
	return l.store.Read(ctx, func(r Reader) error { return samePepper(l.engine, r) })
}

func samePepper(l *engine, r Reader) error {
	first, err := r.PepperCheck()
	if err != nil {
		return fmt.Errorf("reading the check of the pepper: %w", err)
	}
	last, err := r.LastSeal()
	if err != nil {
		return fmt.Errorf("reading the journal's last seal: %w", err)
	}
	check, seals := l.cfg.PepperCheck, l.cfg.Seals
	if first != "" && check != "" && first != check || last.KeyID != "" && seals != (SealKey{}) &&
		last.KeyID != seals.id {
		return ErrOtherPepper
	}
	return nil
}
