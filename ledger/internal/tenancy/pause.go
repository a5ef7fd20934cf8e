package tenancy

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// PausePrewarming begins a pause, or changes the one there is. An admin may
// pause the own organization, an operator any and the installation (an empty
// organizationID). It returns every pause that holds then.
func (l Tenancy) PausePrewarming(ctx context.Context, actor ledger.Actor, organizationID, reason string,
	until time.Time) ([]ledger.Pause, error) {
	var all []ledger.Pause
	err := l.InOwnTx(ctx, actor, func(tx *txn.Tx) error {
		if err := mayPause(tx, organizationID); err != nil {
			return err
		}
		if !until.IsZero() && !until.After(tx.Now()) {
			return &ledger.InvalidError{Field: "until", Rule: "must be in the future"}
		}
		p := ledger.Pause{OrganizationID: organizationID, Reason: ledger.ClipText(reason, 200), By: tx.Actor.KeyID,
			At:    tx.Now(),
			Until: until}
		message := "until somebody resumes"
		if !until.IsZero() {
			message = "until " + ledger.FormatTimeSeen(until, tx.Now())
		}
		if err := setPause(tx, p, "prewarm.paused", message); err != nil {
			return err
		}
		var err error
		all, err = pausesWith(tx, p)
		return err
	})
	return all, err
}

// pausesWith lists the pauses that hold once p is stored.
func pausesWith(tx *txn.Tx, p ledger.Pause) ([]ledger.Pause, error) {
	stored, err := tx.Port.Pauses()
	if err != nil {
		return nil, fmt.Errorf("reading what is paused: %w", err)
	}
	all := slices.DeleteFunc(stored, func(o ledger.Pause) bool { return o.OrganizationID == p.OrganizationID })
	if p.Until.IsZero() || p.Until.After(tx.Now()) {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b ledger.Pause) int { return cmp.Compare(a.OrganizationID, b.OrganizationID) })
	return all, nil
}

// ResumePrewarming ends the pause of an organization, or of the installation
// (an empty organizationID), and returns those that still hold. Without one
// nothing changes.
func (l Tenancy) ResumePrewarming(ctx context.Context, actor ledger.Actor, organizationID string) (
	[]ledger.Pause, error) {
	var left []ledger.Pause
	err := l.InOwnTx(ctx, actor, func(tx *txn.Tx) error {
		if err := mayPause(tx, organizationID); err != nil {
			return err
		}
		paused, err := ReadPauses(tx)
		if err != nil {
			return err
		}
		p, ok := paused[organizationID]
		if p.OrganizationID, p.Until = organizationID, tx.Now(); ok {
			since := ledger.FormatTimeSeen(p.At, tx.Now())
			if err := setPause(tx, p, "prewarm.resumed", "paused since "+since); err != nil {
				return err
			}
		}
		left, err = pausesWith(tx, p)
		return err
	})
	return left, err
}

func mayPause(tx *txn.Tx, organizationID string) error {
	if organizationID == "" {
		if tx.Actor.Role != ledger.Operator {
			return ledger.ErrDenied
		}
		return nil
	}
	if _, err := ledger.LiveOrganization(tx.Port, tx.Actor.Scope(), organizationID); err != nil {
		return err
	}
	return tx.Actor.CheckAdministers(organizationID)
}

// setPause stores a pause and has every pool planned anew: what is warm for
// speculative reservations is let go, or what was put off is made up for.
func setPause(tx *txn.Tx, p ledger.Pause, kind, message string) error {
	tx.Change.Pauses = append(tx.Change.Pauses, p)
	tx.AddEvent(ledger.Event{OrganizationID: p.OrganizationID, Type: kind,
		Subject: cmp.Or(p.OrganizationID, ledger.Installation),
		Reason:  "asked", Message: message})
	return txn.WakeAllPlans(tx)
}

// pauses are the pauses that hold now, by organization; the installation's is
// under the empty name.
type pauses map[string]ledger.Pause

// ReadPauses reads what is paused now.
func ReadPauses(tx *txn.Tx) (pauses, error) {
	found, err := tx.Port.Pauses()
	if err != nil {
		return nil, fmt.Errorf("reading what is paused: %w", err)
	}
	return ByOrganization(found), nil
}

// ByOrganization indexes pauses by the organization that each is of.
func ByOrganization(found []ledger.Pause) pauses {
	by := make(pauses, len(found))
	for _, p := range found {
		by[p.OrganizationID] = p
	}
	return by
}

// PauseOf returns the pause that an organization is under, its own or everybody's.
func (p pauses) PauseOf(organizationID string) (ledger.Pause, bool) {
	if own, ok := p[organizationID]; ok {
		return own, true
	}
	everybody, ok := p[""]
	return everybody, ok
}

// PausedUntil is until when each organization's pre-warming is paused, as the planner
// takes it.
func (p pauses) PausedUntil() map[string]time.Time {
	until := make(map[string]time.Time, len(p))
	for organization, pause := range p {
		until[organization] = pause.Until
	}
	return until
}
