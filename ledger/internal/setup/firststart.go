package setup

import (
	"context"
	"errors"
	"fmt"

	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/fleet"
	"github.com/forewarm/forewarm/ledger/internal/tenancy"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// Start makes all of a FirstStart that is not there yet, or, when any of it
// cannot be made, nothing: a key that is stored is one with which the
// installation works. A pool that was deleted is made again as long as it is
// declared. ErrOtherPepper: the installation was made with another one.
func (l Setup) Start(ctx context.Context, s ledger.FirstStart) (ledger.Started, error) {
	var out ledger.Started
	err := txn.SubmitTx(l.Engine, &txn.PendingTx{Ctx: ctx, Run: func(ctx context.Context, tx *txn.Tx) error {
		if err := samePepper(l.Engine, tx.Port); err != nil {
			return err
		}
		tx.Change.PepperCheck = l.Config.PepperCheck
		out = ledger.Started{}
		bound := tx.BoundEngine()
		var err error
		if out.FirstKey, err = (tenancy.Tenancy{Engine: bound}).Bootstrap(ctx, s.Organization, s.Limits,
			s.Operator); err != nil {
			return err
		}
		for i, p := range s.Pools {
			started, err := startPool(ctx, bound, tx, p)
			if err != nil {
				return &ledger.PoolError{Index: i, Err: err}
			}
			out.Pools = append(out.Pools, started)
		}
		return nil
	}})
	if err != nil {
		return ledger.Started{}, err
	}
	return out, nil
}

// startPool makes a declared pool unless its name is there.
func startPool(ctx context.Context, bound *txn.Engine, tx *txn.Tx, p ledger.NewPool) (ledger.StartedPool, error) {
	out := ledger.StartedPool{Name: p.Definition.Name}
	if _, err := tx.Port.Pool(out.Name); !errors.Is(err, ledger.ErrNotFound) {
		return out, err
	}
	gone, err := tx.Port.DeletedPool(out.Name)
	if ledger.IgnoreMissing(err) != nil {
		return out, fmt.Errorf("looking for a deleted pool of that name: %w", err)
	}
	out.Made, out.DeletedAt = true, gone.DeletedAt
	_, err = fleet.Fleet{Engine: bound}.CreatePool(ctx, ledger.SystemActor("config"), p.Definition, p.Prior)
	return out, err
}

// CheckPepper compares the pepper with that of the first start, and the key of
// the journal's newest seal, which is made from it, with the ledger's own.
func (l Setup) CheckPepper(ctx context.Context) error {
	return l.Store.Read(ctx, func(r ledger.Reader) error { return samePepper(l.Engine, r) })
}

func samePepper(l *txn.Engine, r ledger.Reader) error {
	first, err := r.PepperCheck()
	if err != nil {
		return fmt.Errorf("reading the check of the pepper: %w", err)
	}
	last, err := r.LastSeal()
	if err != nil {
		return fmt.Errorf("reading the journal's last seal: %w", err)
	}
	check, seals := l.Config.PepperCheck, l.Config.Seals
	if first != "" && check != "" && first != check || last.KeyID != "" && seals != (ledger.SealKey{}) &&
		last.KeyID != seals.ID {
		return ledger.ErrOtherPepper
	}
	return nil
}
