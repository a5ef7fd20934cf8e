package fleet

import (
	"errors"
	"fmt"
	"slices"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// maxHolders is how many rules may say whose the work in a pool is.
const maxHolders = 1000

// settleObserved checks what only an observed pool has, and turns the names of
// organizations into ids. before are the pool's holders until now, which were checked when
// they were written.
func settleObserved(tx *txn.Tx, p *capacity.Pool, before capacity.Holders) error {
	if !p.Observed {
		if len(p.Holders.Rules) > 0 || p.Holders.Default != "" {
			return &ledger.InvalidError{Field: "holders", Rule: "must be empty: whoever is handed GPUs of a reserved " +
				"pool holds them", Fix: "leave it out, or write use: observed"}
		}
		return nil
	}
	if err := checkObserved(*p); err != nil {
		return err
	}
	if err := checkOnlyObserver(tx, *p); err != nil {
		return err
	}
	rules := slices.Clone(p.Holders.Rules)
	for i := range rules {
		if rules[i].OrganizationID == "" || (rules[i] == capacity.HolderRule{OrganizationID: rules[i].OrganizationID}) {
			return &ledger.InvalidError{Field: fmt.Sprintf("holders[%d]", i), Rule: "must name an organization, and an " +
				"account, a user, a namespace or a queue of the cluster"}
		}
		if slices.Contains(before.Rules, rules[i]) {
			continue
		}
		if err := settleOrganization(tx, &rules[i].OrganizationID, fmt.Sprintf("holders[%d].organization", i)); err != nil {
			return err
		}
	}
	if p.Holders.Rules = rules; p.Holders.Default != "" && p.Holders.Default == before.Default {
		return nil
	}
	return settleOrganization(tx, &p.Holders.Default, "default_organization")
}

// checkObserved refuses what has no meaning where another scheduler places the work.
func checkObserved(p capacity.Pool) error {
	switch {
	case len(p.Holders.Rules) > maxHolders:
		return &ledger.InvalidError{Field: "holders", Rule: fmt.Sprintf("must be at most %d", maxHolders)}
	case len(p.Alternates) > 0:
		return &ledger.InvalidError{Field: "alternates", Rule: "must be empty: an observed pool is part of one cluster"}
	case p.Timers.Cleaning > 0:
		return &ledger.InvalidError{Field: "cleaning_seconds", Rule: "must be 0: the cluster itself hands nodes over"}
	case p.OnlineShare > 0:
		return &ledger.InvalidError{Field: "online_share", Rule: "must be 0: the cluster's own scheduler shares it out"}
	}
	return nil
}

// checkOnlyObserver refuses a second pool of the same nodes: work there would be of both.
func checkOnlyObserver(tx *txn.Tx, p capacity.Pool) error {
	stored, err := ledger.ObservedPools(tx.Port, p.Provisioner)
	if err != nil {
		return err
	}
	for _, other := range slices.Concat(stored, tx.Change.Pools) {
		if other.ID != p.ID && other.Observed && other.DeletedAt.IsZero() && other.Provisioner == p.Provisioner &&
			other.Type == p.Type {
			return &ledger.InvalidError{Field: "instance_type", Rule: fmt.Sprintf("must be of no other observed pool: %s "+
				"has the %s of %s already, and work there can be counted in one pool only", other.Name, p.Type,
				p.Provisioner), Fix: fmt.Sprintf("change %s, or delete it first; one pool has any number of holders",
				other.Name)}
		}
	}
	return nil
}

// settleOrganization makes of an organization's id or name its id. The empty one is the
// installation's only organization.
func settleOrganization(tx *txn.Tx, idOrName *string, field string) error {
	all := ledger.Scope{All: true}
	if *idOrName == "" {
		return settleOnlyOrganization(tx, idOrName, field)
	}
	for _, o := range tx.Change.Organizations {
		if o.ID == *idOrName || o.Name == *idOrName {
			*idOrName = o.ID
			return nil
		}
	}
	o, err := tx.Port.Organization(all, *idOrName)
	if err == nil && o.DeletedAt.IsZero() {
		return nil
	}
	if err != nil && !errors.Is(err, ledger.ErrNotFound) {
		return fmt.Errorf("reading organization: %w", err)
	}
	named, err := tx.Port.FindNamed(all, ledger.NounOrganization, *idOrName)
	if err != nil {
		return fmt.Errorf("finding organization: %w", err)
	}
	if len(named) != 1 {
		return &ledger.InvalidError{Field: field, Rule: fmt.Sprintf("must be an organization's id or name, and %q is none",
			*idOrName), Fix: "name one of those that forewarm organizations list shows"}
	}
	*idOrName = named[0].ID
	return nil
}

func settleOnlyOrganization(tx *txn.Tx, id *string, field string) error {
	found := slices.Clone(tx.Change.Organizations)
	stored, err := tx.Port.Organizations(ledger.Scope{All: true}, ledger.Page{Limit: 2})
	if err != nil {
		return fmt.Errorf("listing organizations: %w", err)
	}
	found = append(found, stored...)
	if len(found) != 1 {
		return &ledger.InvalidError{Field: field, Fix: "add default_organization",
			Rule: "must name the organization of work that no rule names, as there are several"}
	}
	*id = found[0].ID
	return nil
}

// awaitLook keeps back those actions of a plan that end a promise for which nobody came,
// until the pool's cluster was looked at as of then: after an outage somebody may have come
// whom nobody has seen yet. Where no look succeeds for long, nobody waits for one. It returns
// when the plan is to be made again, too.
func awaitLook(tx *txn.Tx, p *txn.PoolTx, result plan.Result) (plan.Result, error) {
	if !p.Pool.Observed || !slices.ContainsFunc(result.Actions, endsPromise) {
		return result, nil
	}
	seen, err := tx.Port.Watched(p.Pool.Provisioner)
	if err != nil {
		return result, fmt.Errorf("reading how %s is watched: %w", p.Pool.Name, err)
	}
	blind := !seen.BlindSince.IsZero() && tx.Now().Sub(seen.BlindSince) >= ledger.BlindAfter
	if seen.At.IsZero() || blind {
		return result, nil
	}
	kept := slices.DeleteFunc(slices.Clone(result.Actions), func(a plan.Action) bool {
		due := a.Facts.End
		if tx.Now().Before(due) {
			due = a.Facts.Due
		}
		return endsPromise(a) && due.After(seen.At)
	})
	if again := tx.Now().Add(tx.Config.ObserveEvery); len(kept) < len(result.Actions) &&
		(result.Next.IsZero() || again.Before(result.Next)) {
		result.Next = again
	}
	result.Actions = kept
	return result, nil
}

func endsPromise(a plan.Action) bool {
	return a.Kind == plan.ExpireReservation || a.Kind == plan.FailReservation
}
