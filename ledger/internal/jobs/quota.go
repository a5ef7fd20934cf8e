package jobs

import (
	"fmt"

	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/ledger"
)

// heldBeside is how many GPUs of the job's pool its organization has now.
func heldBeside(q queue, j job.Job) (n int) {
	for _, a := range q.pools[j.PoolID].Allocations {
		if a.Live() && !a.Observed() && a.OrganizationID == j.OrganizationID {
			n += a.Shape.GPUs()
		}
	}
	return n
}

// lacksQuota reports whether a job's organization may not hold what it asks for beside what it has in the pool. What
// it has elsewhere, or is promised, admission counts, too.
func lacksQuota(q queue, j job.Job) bool {
	most, bounded := q.most[j.OrganizationID]
	return bounded && !inReservation(j) && heldBeside(q, j)+j.Shape.GPUs() > most
}

// waitingNow is a job that may start by now, and why it has not.
func waitingNow(q queue, j job.Job) ledger.QueuedJob {
	if !lacksQuota(q, j) {
		return ledger.QueuedJob{Job: j, Code: ledger.WaitsForGPUs}
	}
	return ledger.QueuedJob{Job: j, Code: ledger.WaitsForQuota, Detail: fmt.Sprintf("its organization has %s here, and "+
		"may have %d at once", phrase.Count(heldBeside(q, j), "GPU"), q.most[j.OrganizationID])}
}
