package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// ErrLastOperator means that without this key no operator would be left, or only
// such whose keys expire.
var ErrLastOperator = errors.New("no operator's key that lasts would be left")

// lockOperators holds the organizations of all operators' keys, so that of two
// who end each other's keys at the same time one waits for the other, and then
// sees what it did. Whatever may end the last of them must have called it first.
func lockOperators(tx *groupTx) error {
	if tx.grouped {
		tx.needsOwnTx = true
		return errNeedsOwnTx
	}
	orgs, err := operatorOrganizations(tx)
	if err != nil {
		return err
	}
	opened, err := tx.lockRows(LockRequest{Organizations: orgs})
	if errors.Is(err, ErrNotFound) { // one was deleted while we waited
		err = ErrConflict
	}
	if err != nil {
		return fmt.Errorf("locking the operators' organizations: %w", err)
	}
	return tx.acceptLocked(opened)
}

// operatorOrganizations lists whose keys operators have, in order.
func operatorOrganizations(tx *groupTx) ([]string, error) {
	keys, err := tx.port.OperatorKeys()
	if err != nil {
		return nil, err
	}
	var orgs []string
	for _, k := range keys {
		if k.OrganizationID != "" {
			orgs = append(orgs, k.OrganizationID)
		}
	}
	slices.Sort(orgs)
	return slices.Compact(orgs), nil
}

// countOperators counts the keys with which somebody is an operator at a time, and those of
// them that never expire.
func countOperators(r identities, keys []Key, at time.Time) (now, lasting int, err error) {
	for _, k := range keys {
		c, err := readCredential(r, k.ID)
		if ignoreMissing(err) != nil {
			return 0, 0, fmt.Errorf("reading operator's key %s: %w", k.ID, err)
		}
		if err != nil || !c.Valid(at) || c.Role() != Operator {
			continue
		}
		if now++; c.ExpiresAt().IsZero() {
			lasting++
		}
	}
	return now, lasting, nil
}

// keepOperator refuses what the transaction is about to do when it would leave nobody
// who may do everything: neither now, nor once keys expire. lockOperators was
// called before.
func keepOperator(tx *groupTx) error {
	keys, err := tx.port.OperatorKeys()
	if err != nil {
		return err
	}
	before, lastedBefore, err := countOperators(tx.port, keys, tx.now())
	if err != nil {
		return err
	}
	after, lastAfter, err := countOperators(intended{tx.port, &tx.change}, keys, tx.now())
	if err == nil && (before > 0 && after == 0 || lastedBefore > 0 && lastAfter == 0) {
		err = ErrLastOperator
	}
	return err
}

// intended looks identities up as they will be once a change is saved.
type intended struct {
	Reader
	change *Change
}

func (i intended) Key(s Scope, id string) (Key, error) {
	for _, k := range slices.Backward(i.change.Keys) {
		if k.ID == id {
			return k, nil
		}
	}
	return i.Reader.Key(s, id)
}

func (i intended) User(s Scope, id string) (User, error) {
	for _, user := range slices.Backward(i.change.Users) {
		if user.ID == id {
			return user, nil
		}
	}
	return i.Reader.User(s, id)
}

// RecoverOperator stores an operator's key that stands for itself and never
// expires, made by who holds the installation's data, whatever became of all
// other keys. Its secret was made and hashed by the caller. ErrNotFound: nothing
// was set up here yet.
func (l Tenancy) RecoverOperator(ctx context.Context, k Key) (Key, error) {
	if err := checkName("name", k.Name); err != nil {
		return k, err
	}
	err := l.inOwnTx(ctx, SystemActor("host"), func(tx *groupTx) error {
		orgs, err := tx.port.Organizations(Scope{All: true}, Page{Limit: 1})
		if err != nil {
			return err
		}
		if len(orgs) == 0 {
			return fmt.Errorf("finding an organization: %w", ErrNotFound)
		}
		k = newOperator(tx, k, orgs[0].ID)
		tx.change.Keys = append(tx.change.Keys, k)
		tx.addEvent(Event{OrganizationID: k.OrganizationID, Type: "key.recovered", Subject: k.ID, Message: k.Name})
		return nil
	})
	k.Version = 1
	return k, err
}

// newOperator is a key that nobody made.
func newOperator(tx *groupTx, k Key, organizationID string) Key {
	return Key{
		ID: k.ID, OrganizationID: organizationID, Name: k.Name, Kind: PersonKey, Role: Operator,
		Hash: k.Hash, PepperVersion: k.PepperVersion, Last4: k.Last4, CreatedAt: tx.now(),
	}
}
