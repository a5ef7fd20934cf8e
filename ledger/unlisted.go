package ledger

import (
	"slices"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/job"
)

// mostUnlisted bounds of how many a daemon is asked at once whether they are over, as the contract does.
const mostUnlisted = 256

// UnlistedHolds returns, of the allocations on a node, those that its daemon did not list although they may have work
// there: it is asked whether they are over. Nobody may have begun any, so that not being listed says nothing by itself.
// Those of jobs are over with their attempts.
func UnlistedHolds(nodeID string, listed []string, on []allocation.Allocation) (all []string) {
	for _, a := range on {
		if MayBeOverOn(a, nodeID) && !slices.Contains(listed, a.ID) && len(all) < mostUnlisted {
			all = append(all, a.ID)
		}
	}
	return all
}

// MayBeOverOn reports whether the word of a node's daemon that an allocation is over there matters.
func MayBeOverOn(a allocation.Allocation, nodeID string) bool {
	return a.State() == allocation.Active && !a.Observed() && a.JobID == "" &&
		(len(a.Opened) == 0 || slices.Contains(a.Opened, nodeID))
}

// UnlistedJobs returns, of the ranks that may run on a node, the attempts that its daemon does not list.
func UnlistedJobs(mayRun []job.Rank, listed []JobReport) (all []JobAttempt) {
	for _, r := range mayRun {
		known := slices.ContainsFunc(listed, func(s JobReport) bool { return s.IsOf(r) })
		if !known && len(all) < mostUnlisted {
			all = append(all, JobAttempt{JobID: r.JobID, Attempt: r.Attempt})
		}
	}
	return all
}
