package jobs

import (
	"errors"
	"fmt"

	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/booking"
	"github.com/forewarm/forewarm/ledger/internal/tenancy"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// bounds are what those may have who submitted jobs that are edited, and who edits them, by the keys of the former.
type bounds map[string]*booking.Bounds

// readBounds reads the bounds of an edit that has jobs run for longer. It locks their organizations, before their pools
// are.
func readBounds(tx *txn.Tx, some []job.Job, e ledger.JobEdit) (bounds, error) {
	if e.MaxRuntime == nil {
		return nil, nil //nolint:nilnil // nothing is bounded
	}
	organizations := map[string]string{}
	for _, j := range some {
		organizations[j.SubmittedBy] = j.OrganizationID
	}
	all := bounds{}
	for _, key := range txn.SortedKeys(organizations) {
		askers, err := askersOf(tx, key, organizations[key])
		if err != nil {
			return nil, err
		}
		if all[key], err = booking.ReadBounds(tx, organizations[key], askers); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// askersOf are whose a job is that a key submitted, and who edits it if they are of the same organization. Of a key
// that is not there any more no job starts.
func askersOf(tx *txn.Tx, key, organizationID string) (all []ledger.Asker, err error) {
	if tx.Actor.OrganizationID == organizationID {
		all = append(all, tx.Actor.AskerFor())
	}
	if key == tx.Actor.KeyID {
		return all, nil
	}
	who, err := tenancy.ReadCredential(tx.Port, key)
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return all, nil
	case err != nil:
		return nil, fmt.Errorf("reading who submitted a job: %w", err)
	}
	return append(all, who.Actor().AskerFor()), nil
}

// check refuses a longer runtime that would have been refused when the job was submitted.
func (b bounds) check(tx *txn.Tx, p *txn.PoolTx, was, next job.Job) error {
	if next.MaxRuntime <= was.MaxRuntime || b[was.SubmittedBy] == nil {
		return nil
	}
	return b[was.SubmittedBy].Check(tx, p, next)
}
