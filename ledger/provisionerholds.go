package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ProvisionerHold says which worker a provisioner serves that serves one at a
// time.
type ProvisionerHold struct {
	Name   string // of the provisioner
	Holder string // what stays the same when the worker is started again, and only then
	Host   string // where it runs, for people
	Until  time.Time
}

// ProvisionerHeldError says that a provisioner serves another worker now.
type ProvisionerHeldError struct{ ProvisionerHold }

// Error names the provisioner and where the other worker runs.
func (e *ProvisionerHeldError) Error() string {
	return fmt.Sprintf("provisioner %q serves the worker on %s, and one worker at a time: what it knows of its "+
		"machines is in that worker's data directory",
		e.Name, e.Host)
}

// HoldProvisioner has a provisioner serve one worker alone for a while from now.
// Repeated by the same holder, it prolongs the hold. *ProvisionerHeldError: another
// holds it.
func (l Fleet) HoldProvisioner(ctx context.Context, h ProvisionerHold, lasts time.Duration) error {
	return l.store.InTx(ctx, func(tx Tx) error {
		h.Until = tx.Now().Add(lasts)
		now, err := tx.HoldProvisioner(h)
		if err == nil && now.Holder != h.Holder {
			err = &ProvisionerHeldError{now}
		}
		return err
	})
}

// ReleaseProvisioner ends a hold at once, so that the next worker need not wait for
// its end. Of one that another has it changes nothing.
func (l Fleet) ReleaseProvisioner(ctx context.Context, h ProvisionerHold) error {
	err := l.HoldProvisioner(ctx, h, 0)
	if _, held := errors.AsType[*ProvisionerHeldError](err); held {
		return nil
	}
	return err
}
