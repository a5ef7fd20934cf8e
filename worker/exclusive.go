package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/provisioners"
)

// Of holds on provisioners that serve one worker at a time: how long one lasts that
// is not renewed, how often it is renewed, and how often it is asked for while
// another worker has it.
const (
	holdLasts = 30 * time.Second
	holdRenew = 10 * time.Second
	holdRetry = 2 * time.Second
)

// exclusiveOf are the provisioners that serve one worker at a time.
func exclusiveOf(provs []provisioners.Provisioner) (exclusive []provisioners.Provisioner) {
	for _, p := range provs {
		if _, alone := p.(provisioners.Exclusive); alone {
			exclusive = append(exclusive, p)
		}
	}
	return exclusive
}

// awaitHold waits until this worker holds its exclusive provisioners, and returns where the worker runs that it waited
// for, if it did. It returns false when ctx ended before.
func (w *Worker) awaitHold(ctx context.Context) (before string, ok bool) {
	tick := time.NewTicker(holdRetry)
	defer tick.Stop()
	for said := ""; ; {
		err := w.holdExclusive(ctx)
		if held, is := errors.AsType[*ledger.ProvisionerHeldError](err); is {
			before = held.Host
		}
		switch {
		case ctx.Err() != nil:
			return "", false
		case err == nil:
			return before, true
		case err.Error() != said:
			said = err.Error()
			w.cfg.Logger.WarnContext(ctx,
				"not working yet: waiting for a provisioner that another worker may have; stop that worker, or wait "+
					"until it is gone; its machines are known there alone",
				"error", err, "lasts", holdLasts)
		}
		select {
		case <-ctx.Done():
			return "", false
		case <-tick.C:
		}
	}
}

// keepHold renews the holds until ctx ends. It returns an error when another worker
// has one, as it may after this process was paused for long.
func (w *Worker) keepHold(ctx context.Context) error {
	tick := time.NewTicker(holdRenew)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		err := w.holdExclusive(ctx)
		if _, held := errors.AsType[*ledger.ProvisionerHeldError](err); held {
			return err
		}
		if err != nil && ctx.Err() == nil {
			w.cfg.Logger.WarnContext(ctx, "could not renew the hold on a provisioner; trying again", "error", err)
		}
	}
}

func (w *Worker) holdExclusive(ctx context.Context) error {
	for _, p := range w.exclusive {
		if err := w.ledger.HoldProvisioner(ctx, w.holdOf(p.Name()), holdLasts); err != nil {
			return fmt.Errorf("holding a provisioner: %w", err)
		}
	}
	return nil
}

// letGo ends the holds, when all work is over.
func (w *Worker) letGo(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.cfg.Grace)
	defer cancel()
	for _, p := range w.exclusive {
		if err := w.ledger.ReleaseProvisioner(ctx, w.holdOf(p.Name())); err != nil {
			w.cfg.Logger.WarnContext(ctx, "could not release a provisioner; its hold lapses", "provisioner", p.Name(),
				"error", err)
		}
	}
}

func (w *Worker) holdOf(name string) ledger.ProvisionerHold {
	return ledger.ProvisionerHold{Name: name, Holder: w.cfg.Holder, Host: w.cfg.Host}
}
