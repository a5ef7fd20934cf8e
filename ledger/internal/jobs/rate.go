package jobs

import (
	"fmt"

	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// checkRate counts a submission for whoever makes it, and refuses one beyond what they may. It runs
// under their organization's lock.
func checkRate(tx *txn.Tx, organizationID string) error {
	rules := tx.Config.Scheduling.Now()
	if !rules.BoundsSubmissions() || tx.Actor.KeyID == ledger.SystemActor("").KeyID {
		return nil
	}
	who := organizationID + "/" + tx.Actor.KeyID
	if tx.Actor.UserID != "" {
		who = organizationID + "/" + tx.Actor.UserID
	}
	used, err := entriesOf(tx, who)
	if err != nil {
		return err
	}
	used, err = rules.CountSubmission(used, tx.Now())
	if err == nil {
		tx.Change.JobEntries = append(tx.Change.JobEntries, used)
	}
	return err
}

// entriesOf is what somebody has used, as this transaction leaves it.
func entriesOf(tx *txn.Tx, who string) (ledger.JobEntries, error) {
	for i := len(tx.Change.JobEntries) - 1; i >= 0; i-- {
		if e := tx.Change.JobEntries[i]; e.Who == who {
			return e, nil
		}
	}
	e, err := tx.Port.JobEntries(who)
	if err != nil {
		return e, fmt.Errorf("reading how much %s has submitted: %w", who, err)
	}
	return e, nil
}

// checkPriority refuses a priority that there is not, or that the pool keeps for others.
func checkPriority(tx *txn.Tx, p *txn.PoolTx, j job.Job) error {
	rules := tx.Config.Scheduling.Now().Of(p.Pool.Name)
	name := ""
	if len(rules.Priorities.Of(j.Priority).Organizations) > 0 {
		id, err := tx.Actor.BookingOrganization()
		if j.OrganizationID != "" {
			id, err = j.OrganizationID, nil
		}
		if err != nil {
			return err
		}
		o, err := tx.Port.Organization(ledger.Scope{All: true}, id)
		if err != nil {
			return fmt.Errorf("reading organization: %w", err)
		}
		name = o.Name
	}
	return rules.CheckPriority(p.Pool.Name, j.Priority, tx.Actor.Role, name)
}
