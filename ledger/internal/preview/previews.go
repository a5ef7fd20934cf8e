package preview

import (
	"context"
	"errors"
	"time"

	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/outlook"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// planValid is how long a plan may be applied. It is short, because what it
// shows holds nothing: others may take the place meanwhile.
const planValid = 5 * time.Minute

// errDryRun ends the transaction of a dry run.
var errDryRun = errors.New("only a dry run")

// DryRun runs an operation as it would be run, with everything that can make it
// fail, tells what it changed, and takes all of it back.
func (l Previews) DryRun(ctx context.Context, actor ledger.Actor, op txn.BoundOperation) (
	ledger.Effect, []byte, error) {
	var effect ledger.Effect
	var answer []byte
	err := l.Store.InTx(ctx, func(tx ledger.Tx) error {
		before, err := gpusOf(tx, actor.OrganizationID)
		if err != nil {
			return err
		}
		effect = ledger.Effect{}
		if _, answer, err = op(ctx, observing(l.Engine, tx, &effect)); err != nil {
			return err
		}
		before = effect.SetSubject(actor, before)
		after, err := gpusOf(tx, effect.OrganizationID)
		if err != nil {
			return err
		}
		effect.At = tx.Now()
		effect.CountGPUs(before, after)
		if err := effect.AddUpCost(tx, effect.OrganizationID); err != nil {
			return err
		}
		if err := estimateWaits(&effect, outlook.NewWaits(l.Config, tx)); err != nil {
			return err
		}
		return errDryRun
	})
	if errors.Is(err, errDryRun) {
		err = nil
	}
	return effect, answer, err
}

// MakePlan tries a request and stores what it showed, which show renders.
// Nothing else changes.
func (l Previews) MakePlan(ctx context.Context, actor ledger.Actor, p ledger.Preview, op txn.BoundOperation,
	show func(ledger.Effect, []byte) ([]byte, error)) (ledger.Preview, error) {
	effect, answer, err := l.DryRun(ctx, actor, op)
	if err != nil {
		return p, err
	}
	if p.Effect, err = show(effect, answer); err != nil {
		return p, err
	}
	p.ID, p.OrganizationID, p.MadeBy, p.Fingerprint = l.IDs.New(ids.Plan), actor.OrganizationID, actor.KeyID,
		effect.Fingerprint()
	if actor.Role == ledger.Operator {
		p.OrganizationID = "" // it may show the work of every tenant
	}
	err = l.Store.InTx(ctx, func(tx ledger.Tx) error {
		p.CreatedAt = tx.Now()
		p.ExpiresAt = p.CreatedAt.Add(planValid)
		return tx.Save(ledger.Change{Plans: []ledger.Preview{p}})
	})
	p.Version++
	return p, err
}

// PlanOf reads a plan that the actor may see; an agent sees its own.
func (l Previews) PlanOf(ctx context.Context, actor ledger.Actor, id string) (ledger.Preview, error) {
	var p ledger.Preview
	err := l.Store.Read(ctx, func(r ledger.Reader) (err error) {
		p, err = visiblePlan(r, actor, id)
		return err
	})
	return p, err
}

func visiblePlan(r ledger.Reader, actor ledger.Actor, id string) (ledger.Preview, error) {
	p, err := r.Preview(actor.Scope(), id)
	if err == nil && actor.Kind == ledger.AgentKey && p.MadeBy != actor.KeyID {
		return ledger.Preview{}, ledger.ErrNotFound
	}
	return p, err
}

// ApplyPlan runs a plan's operation and commits it if its effect is the one that was
// shown; otherwise it answers *PlanStaleError and nothing has changed. A plan
// that was applied before answers what it answered then.
func (l Previews) ApplyPlan(ctx context.Context, actor ledger.Actor, id string, op txn.BoundOperation) (
	ledger.Preview, error) {
	var p ledger.Preview
	applied := false // by this call
	err := l.Store.InTx(ctx, func(tx ledger.Tx) (err error) {
		if p, err = visiblePlan(tx, actor, id); err != nil || !p.AppliedAt.IsZero() {
			return err
		}
		var effect ledger.Effect
		p.Status, p.Answer, err = op(ctx, observing(l.Engine, tx, &effect))
		if !tx.Now().Before(p.ExpiresAt) { // asked after the verb's locks, so that its time is not older than they
			return ledger.ErrPlanExpired
		}
		if err != nil {
			return staleError(id, err)
		}
		if shown, now := effect.CompareTo(p.Fingerprint); len(shown)+len(now) > 0 {
			return &ledger.PlanStaleError{PlanID: id, Changes: ledger.DescribeChanges(actor, shown, now)}
		}
		p.AppliedAt, applied = tx.Now(), true
		return tx.Save(ledger.Change{Plans: []ledger.Preview{p}})
	})
	if err == nil && applied {
		p.Version++
	}
	if err == nil {
		return p, nil
	}
	return appliedMeanwhile(ctx, l.Engine, actor, id, err)
}

// staleError tells what makes a plan stale from what would fail at any time.
func staleError(id string, err error) error {
	var refused *ledger.RefusedError
	var state *ledger.StateError
	if errors.As(err, &refused) || errors.As(err, &state) || errors.Is(err, ledger.ErrNotFound) ||
		errors.Is(err, ledger.ErrConflict) {
		return &ledger.PlanStaleError{PlanID: id, Err: err}
	}
	return err
}

// appliedMeanwhile looks whether a plan failed only because it was applied at
// the same time: then that is the answer.
func appliedMeanwhile(ctx context.Context, l *txn.Engine, actor ledger.Actor, id string, failed error) (
	ledger.Preview, error) {
	p, err := Previews{Engine: l}.PlanOf(ctx, actor, id)
	if err == nil && !p.AppliedAt.IsZero() {
		return p, nil
	}
	return p, failed
}
