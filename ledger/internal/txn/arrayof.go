package txn

import (
	"fmt"
	"maps"

	"github.com/forewarm/forewarm/core/job"
)

// ArraysOf returns the arrays of those of some jobs that there are, by their ids. What this transaction does not know
// it reads at once.
func ArraysOf(tx *Tx, jobIDs []string) (map[string]job.Array, error) {
	all := make(map[string]job.Array, len(jobIDs))
	var unknown []string
	for _, id := range jobIDs {
		if i := changedJob(tx, id); i >= 0 {
			all[id] = tx.Change.Jobs[i].Array
		} else if j, found := tx.jobs.byID[id]; found {
			all[id] = j.Array
		} else if array, found := tx.jobs.arrays[id]; found {
			all[id] = array
		} else {
			unknown = append(unknown, id)
		}
	}
	if len(unknown) == 0 {
		return all, nil
	}
	read, err := tx.Port.JobsByID(unknown)
	if err != nil {
		return nil, fmt.Errorf("reading the arrays of jobs: %w", err)
	}
	if tx.jobs.arrays == nil {
		tx.jobs.arrays = map[string]job.Array{}
	}
	for _, id := range unknown {
		tx.jobs.arrays[id] = read[id].Array // also that there is none
	}
	maps.Copy(all, tx.jobs.arrays)
	return all, nil
}
