package tenancy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// lockOperators holds the organizations of all operators' keys, so that of two
// who end each other's keys at the same time one waits for the other, and then
// sees what it did. Whatever may end the last of them must have called it first.
func lockOperators(tx *txn.Tx) error {
	if tx.Grouped {
		tx.NeedsOwnTx = true
		return txn.ErrNeedsOwnTx
	}
	orgs, err := operatorOrganizations(tx)
	if err != nil {
		return err
	}
	opened, err := tx.LockRows(ledger.LockRequest{Organizations: orgs})
	if errors.Is(err, ledger.ErrNotFound) { // one was deleted while we waited
		err = ledger.ErrConflict
	}
	if err != nil {
		return fmt.Errorf("locking the operators' organizations: %w", err)
	}
	return tx.AcceptLocked(opened)
}

// operatorOrganizations lists whose keys operators have, in order.
func operatorOrganizations(tx *txn.Tx) ([]string, error) {
	keys, err := tx.Port.OperatorKeys()
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
func countOperators(r Identities, keys []ledger.Key, at time.Time) (now, lasting int, err error) {
	for _, k := range keys {
		c, err := ReadCredential(r, k.ID)
		if ledger.IgnoreMissing(err) != nil {
			return 0, 0, fmt.Errorf("reading operator's key %s: %w", k.ID, err)
		}
		if err != nil || !c.Valid(at) || c.Role() != ledger.Operator {
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
func keepOperator(tx *txn.Tx) error {
	keys, err := tx.Port.OperatorKeys()
	if err != nil {
		return err
	}
	before, lastedBefore, err := countOperators(tx.Port, keys, tx.Now())
	if err != nil {
		return err
	}
	after, lastAfter, err := countOperators(intended{tx.Port, &tx.Change}, keys, tx.Now())
	if err == nil && (before > 0 && after == 0 || lastedBefore > 0 && lastAfter == 0) {
		err = ledger.ErrLastOperator
	}
	return err
}

// intended looks identities up as they will be once a change is saved.
type intended struct {
	ledger.Reader
	change *ledger.Change
}

func (i intended) Key(s ledger.Scope, id string) (ledger.Key, error) {
	for _, k := range slices.Backward(i.change.Keys) {
		if k.ID == id {
			return k, nil
		}
	}
	return i.Reader.Key(s, id)
}

func (i intended) User(s ledger.Scope, id string) (ledger.User, error) {
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
func (l Tenancy) RecoverOperator(ctx context.Context, k ledger.Key) (ledger.Key, error) {
	if err := CheckName("name", k.Name); err != nil {
		return k, err
	}
	err := l.InOwnTx(ctx, ledger.SystemActor("host"), func(tx *txn.Tx) error {
		orgs, err := tx.Port.Organizations(ledger.Scope{All: true}, ledger.Page{Limit: 1})
		if err != nil {
			return err
		}
		if len(orgs) == 0 {
			return fmt.Errorf("finding an organization: %w", ledger.ErrNotFound)
		}
		k = newOperator(tx, k, orgs[0].ID)
		tx.Change.Keys = append(tx.Change.Keys, k)
		tx.AddEvent(ledger.Event{OrganizationID: k.OrganizationID, Type: "key.recovered", Subject: k.ID,
			Message: k.Name})
		return nil
	})
	k.Version = 1
	return k, err
}

// newOperator is a key that nobody made.
func newOperator(tx *txn.Tx, k ledger.Key, organizationID string) ledger.Key {
	return ledger.Key{
		ID: k.ID, OrganizationID: organizationID, Name: k.Name, Kind: ledger.PersonKey, Role: ledger.Operator,
		Hash: k.Hash, PepperVersion: k.PepperVersion, Last4: k.Last4, CreatedAt: tx.Now(),
	}
}
