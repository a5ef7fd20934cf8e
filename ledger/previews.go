package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/forewarm/forewarm/internal/ids"
)

// planValid is how long a plan may be applied. It is short, because what it
// shows holds nothing: others may take the place meanwhile.
const planValid = 5 * time.Minute

// Preview is what somebody was shown before they say yes: a request, and the
// effect that it would have had. It is applied only if it still has that effect.
type Preview struct {
	ID             string
	OrganizationID string // empty: an operator's
	MadeBy         string // key id
	Kind           string
	Request        []byte // JSON
	Effect         []byte // JSON, as it was shown
	Fingerprint    string // of the effect: see Effect.Mark
	CreatedAt      time.Time
	ExpiresAt      time.Time
	AppliedAt      time.Time // zero: not applied
	Status         int       // of the answer
	Answer         []byte    // JSON; empty until it is applied
	Version        int
}

// Operation is a request as code: it calls verbs of the ledger that it is given,
// which work in one transaction, and returns what the request answers.
type Operation func(ctx context.Context, l *Ledger) (status int, answer []byte, err error)

// ErrPlanExpired says that the plan is too old to be applied.
var ErrPlanExpired = errors.New("the plan has expired")

// PlanStaleError says that a plan would no longer do what was shown. Err is what
// stands in the way now, or nil when the request succeeds with another effect.
type PlanStaleError struct {
	PlanID  string
	Err     error
	Changes []string // what would be otherwise than it was shown, in words; none with Err
}

// Error names the plan and what stands in the way.
func (e *PlanStaleError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s does not hold any more: %s", e.PlanID, e.Err)
	}
	return e.PlanID + " would no longer do what it showed: now " + strings.Join(e.Changes, "; ")
}

// Unwrap returns what stands in the way.
func (e *PlanStaleError) Unwrap() error { return e.Err }

// errDryRun ends the transaction of a dry run.
var errDryRun = errors.New("only a dry run")

// DryRun runs an operation as it would be run, with everything that can make it
// fail, tells what it changed, and takes all of it back.
func (l Previews) DryRun(ctx context.Context, actor Actor, op Operation) (Effect, []byte, error) {
	var effect Effect
	var answer []byte
	err := l.store.InTx(ctx, func(tx Tx) error {
		before, err := gpusOf(tx, actor.OrganizationID)
		if err != nil {
			return err
		}
		effect = Effect{}
		if _, answer, err = op(ctx, observing(l.engine, tx, &effect)); err != nil {
			return err
		}
		before = effect.setSubject(actor, before)
		after, err := gpusOf(tx, effect.OrganizationID)
		if err != nil {
			return err
		}
		effect.At = tx.Now()
		effect.countGPUs(before, after)
		if err := effect.addUpCost(tx, effect.OrganizationID); err != nil {
			return err
		}
		if err := effect.estimateWaits(Reporting{l.engine}.Waits(tx)); err != nil {
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
func (l Previews) MakePlan(ctx context.Context, actor Actor, p Preview, op Operation,
	show func(Effect, []byte) ([]byte, error)) (Preview, error) {
	effect, answer, err := l.DryRun(ctx, actor, op)
	if err != nil {
		return p, err
	}
	if p.Effect, err = show(effect, answer); err != nil {
		return p, err
	}
	p.ID, p.OrganizationID, p.MadeBy, p.Fingerprint = l.ids.New(ids.Plan), actor.OrganizationID, actor.KeyID, effect.Fingerprint()
	if actor.Role == Operator {
		p.OrganizationID = "" // it may show the work of every tenant
	}
	err = l.store.InTx(ctx, func(tx Tx) error {
		p.CreatedAt = tx.Now()
		p.ExpiresAt = p.CreatedAt.Add(planValid)
		return tx.Save(Change{Plans: []Preview{p}})
	})
	p.Version++
	return p, err
}

// PlanOf reads a plan that the actor may see; an agent sees its own.
func (l Previews) PlanOf(ctx context.Context, actor Actor, id string) (Preview, error) {
	var p Preview
	err := l.store.Read(ctx, func(r Reader) (err error) {
		p, err = visiblePlan(r, actor, id)
		return err
	})
	return p, err
}

func visiblePlan(r Reader, actor Actor, id string) (Preview, error) {
	p, err := r.Preview(actor.Scope(), id)
	if err == nil && actor.Kind == AgentKey && p.MadeBy != actor.KeyID {
		return Preview{}, ErrNotFound
	}
	return p, err
}

// ApplyPlan runs a plan's operation and commits it if its effect is the one that was
// shown; otherwise it answers *PlanStaleError and nothing has changed. A plan
// that was applied before answers what it answered then.
func (l Previews) ApplyPlan(ctx context.Context, actor Actor, id string, op Operation) (Preview, error) {
	var p Preview
	applied := false // by this call
	err := l.store.InTx(ctx, func(tx Tx) (err error) {
		if p, err = visiblePlan(tx, actor, id); err != nil || !p.AppliedAt.IsZero() {
			return err
		}
		var effect Effect
		p.Status, p.Answer, err = op(ctx, observing(l.engine, tx, &effect))
		if !tx.Now().Before(p.ExpiresAt) { // asked after the verb's locks, so that its time is not older than they
			return ErrPlanExpired
		}
		if err != nil {
			return staleError(id, err)
		}
		if shown, now := effect.compareTo(p.Fingerprint); len(shown)+len(now) > 0 {
			return &PlanStaleError{PlanID: id, Changes: describeChanges(actor, shown, now)}
		}
		p.AppliedAt, applied = tx.Now(), true
		return tx.Save(Change{Plans: []Preview{p}})
	})
	if err == nil && applied {
		p.Version++
	}
	if err == nil {
		return p, nil
	}
	return appliedMeanwhile(ctx, l.engine, actor, id, err)
}

// staleError tells what makes a plan stale from what would fail at any time.
func staleError(id string, err error) error {
	var refused *RefusedError
	var state *StateError
	if errors.As(err, &refused) || errors.As(err, &state) || errors.Is(err, ErrNotFound) ||
		errors.Is(err, ErrConflict) {
		return &PlanStaleError{PlanID: id, Err: err}
	}
	return err
}

// appliedMeanwhile looks whether a plan failed only because it was applied at
// the same time: then that is the answer.
func appliedMeanwhile(ctx context.Context, l *engine, actor Actor, id string, failed error) (Preview, error) {
	p, err := Previews{l}.PlanOf(ctx, actor, id)
	if err == nil && !p.AppliedAt.IsZero() {
		return p, nil
	}
	return p, failed
}
