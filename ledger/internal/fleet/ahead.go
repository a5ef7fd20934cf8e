package fleet

import (
	"fmt"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// workAhead are the jobs of a pool that may not start yet and for which nodes are to be ready, as the scheduler
// foresaw them last, without those that wait no more.
func workAhead(tx *txn.Tx, poolID string) ([]plan.Ahead, error) {
	t, err := tx.Port.JobTurns(poolID)
	if err != nil || len(t.Ahead) == 0 {
		return nil, err
	}
	live, err := tx.Port.JobsByID(idsOf(t.Ahead))
	if err != nil {
		return nil, fmt.Errorf("reading the jobs ahead of pool %s: %w", poolID, err)
	}
	var all []plan.Ahead
	for _, a := range t.Ahead {
		if j, there := live[a.JobID]; there && j.State() == job.Pending && j.PoolID == poolID {
			all = append(all, plan.Ahead{For: a.JobID, OrganizationID: j.OrganizationID, Slots: a.Slots, GPUs: a.GPUs,
				Runs: calendar.Interval{Start: a.At, End: a.Until}})
		}
	}
	return all, nil
}

func idsOf(all []ledger.JobAhead) []string {
	ids := make([]string, len(all))
	for i, a := range all {
		ids[i] = a.JobID
	}
	return ids
}
