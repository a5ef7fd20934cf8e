package ledger

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

// Pause stops pre-warming on a guess for an organization, or for the whole
// installation: speculative reservations are refused and those that are booked
// are not warmed. Promises are kept as before.
type Pause struct {
	OrganizationID string // empty: the installation
	Reason         string // why, in the words of who paused
	By             string // key id
	At             time.Time
	Until          time.Time // it resumes by itself then; zero: when somebody resumes it
}

// Installation is what a pause of everybody is called where an organization is
// named.
const Installation = "installation"

// PausePrewarming begins a pause, or changes the one there is. An admin may
// pause the own organization, an operator any and the installation (an empty
// organizationID). It returns every pause that holds then.
func (l Tenancy) PausePrewarming(ctx context.Context, actor Actor, organizationID, reason string,
	until time.Time) ([]Pause, error) {
	var all []Pause
	err := l.inOwnTx(ctx, actor, func(tx *groupTx) error {
		if err := mayPause(tx, organizationID); err != nil {
			return err
		}
		if !until.IsZero() && !until.After(tx.now()) {
			return &InvalidError{Field: "until", Rule: "must be in the future"}
		}
		p := Pause{OrganizationID: organizationID, Reason: clipText(reason, 200), By: tx.actor.KeyID, At: tx.now(),
			Until: until}
		message := "until somebody resumes"
		if !until.IsZero() {
			message = "until " + formatTime(until)
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
func pausesWith(tx *groupTx, p Pause) ([]Pause, error) {
	stored, err := tx.port.Pauses()
	if err != nil {
		return nil, fmt.Errorf("reading what is paused: %w", err)
	}
	all := slices.DeleteFunc(stored, func(o Pause) bool { return o.OrganizationID == p.OrganizationID })
	if p.Until.IsZero() || p.Until.After(tx.now()) {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b Pause) int { return cmp.Compare(a.OrganizationID, b.OrganizationID) })
	return all, nil
}

// ResumePrewarming ends the pause of an organization, or of the installation
// (an empty organizationID), and returns those that still hold. Without one
// nothing changes.
func (l Tenancy) ResumePrewarming(ctx context.Context, actor Actor, organizationID string) ([]Pause, error) {
	var left []Pause
	err := l.inOwnTx(ctx, actor, func(tx *groupTx) error {
		if err := mayPause(tx, organizationID); err != nil {
			return err
		}
		paused, err := readPauses(tx)
		if err != nil {
			return err
		}
		p, ok := paused[organizationID]
		if p.OrganizationID, p.Until = organizationID, tx.now(); ok {
			if err := setPause(tx, p, "prewarm.resumed", "paused since "+formatTime(p.At)); err != nil {
				return err
			}
		}
		left, err = pausesWith(tx, p)
		return err
	})
	return left, err
}

func mayPause(tx *groupTx, organizationID string) error {
	if organizationID == "" {
		if tx.actor.Role != Operator {
			return ErrDenied
		}
		return nil
	}
	if _, err := LiveOrganization(tx.port, tx.actor.Scope(), organizationID); err != nil {
		return err
	}
	return tx.actor.checkAdministers(organizationID)
}

// setPause stores a pause and has every pool planned anew: what is warm on a
// guess is let go, or what was put off is made up for.
func setPause(tx *groupTx, p Pause, kind, message string) error {
	tx.change.Pauses = append(tx.change.Pauses, p)
	tx.addEvent(Event{OrganizationID: p.OrganizationID, Type: kind, Subject: cmp.Or(p.OrganizationID, Installation),
		Reason: "asked", Message: message})
	for after := ""; ; {
		pools, err := tx.port.Pools(Page{After: after, Limit: 500})
		if err != nil {
			return fmt.Errorf("listing pools: %w", err)
		}
		if len(pools) == 0 {
			return nil
		}
		for _, pool := range pools {
			tx.wakePlan(pool.ID)
			after = pool.ID
		}
	}
}

// pauses are the pauses that hold now, by organization; the installation's is
// under the empty name.
type pauses map[string]Pause

// readPauses reads what is paused now.
func readPauses(tx *groupTx) (pauses, error) {
	found, err := tx.port.Pauses()
	if err != nil {
		return nil, fmt.Errorf("reading what is paused: %w", err)
	}
	return byOrganization(found), nil
}

func byOrganization(found []Pause) pauses {
	by := make(pauses, len(found))
	for _, p := range found {
		by[p.OrganizationID] = p
	}
	return by
}

// pauseOf returns the pause that an organization is under, its own or everybody's.
func (p pauses) pauseOf(organizationID string) (Pause, bool) {
	if own, ok := p[organizationID]; ok {
		return own, true
	}
	everybody, ok := p[""]
	return everybody, ok
}
