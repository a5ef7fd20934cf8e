package jobs

import (
	"fmt"

	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/ledger"
)

// share is what one organization has of one pool.
type share struct{ pool, organization string }

func shareOf(j job.Job) share { return share{j.PoolID, j.OrganizationID} }

// countHeld counts the GPUs that organizations have now in some pools, which the keys name.
func countHeld(pools map[string]ledger.PoolState) map[share]int {
	held := map[share]int{}
	for id, p := range pools {
		for _, a := range p.Allocations {
			if a.Live() && !a.Observed() {
				held[share{id, a.OrganizationID}] += a.Shape.GPUs()
			}
		}
	}
	return held
}

// lacksQuota reports whether a job's organization may not hold what it asks for beside what it has in the pool. What
// it has elsewhere, or is promised, admission counts, too.
func lacksQuota(q queue, j job.Job) bool {
	most, bounded := q.most[j.OrganizationID]
	return bounded && !inReservation(j) && q.held[shareOf(j)]+j.Shape.GPUs() > most
}

// waitingNow is a job that may start by now, and why it has not.
func waitingNow(q queue, j job.Job) ledger.QueuedJob {
	if !lacksQuota(q, j) {
		return ledger.QueuedJob{Job: j, Code: ledger.WaitsForGPUs}
	}
	return ledger.QueuedJob{Job: j, Code: ledger.WaitsForQuota, Detail: fmt.Sprintf("its organization has %s here, and "+
		"may have %d at once", phrase.Count(q.held[shareOf(j)], "GPU"), q.most[j.OrganizationID])}
}
