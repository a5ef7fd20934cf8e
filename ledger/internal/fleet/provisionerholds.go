package fleet

import (
	"context"
	"errors"
	"time"

	"github.com/forewarm/forewarm/ledger"
)

// HoldProvisioner has a provisioner serve one worker alone for a while from now.
// Repeated by the same holder, it prolongs the hold. *ProvisionerHeldError: another
// holds it.
func (l Fleet) HoldProvisioner(ctx context.Context, h ledger.ProvisionerHold, lasts time.Duration) error {
	return l.Store.InTx(ctx, func(tx ledger.Tx) error {
		h.Until = tx.Now().Add(lasts)
		now, err := tx.HoldProvisioner(h)
		if err == nil && now.Holder != h.Holder {
			err = &ledger.ProvisionerHeldError{ProvisionerHold: now}
		}
		return err
	})
}

// ReleaseProvisioner ends a hold at once, so that the next worker need not wait for
// its end. Of one that another has it changes nothing.
func (l Fleet) ReleaseProvisioner(ctx context.Context, h ledger.ProvisionerHold) error {
	err := l.HoldProvisioner(ctx, h, 0)
	if _, held := errors.AsType[*ledger.ProvisionerHeldError](err); held {
		return nil
	}
	return err
}
