package jobs

import (
	"fmt"
	"strings"

	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/scheduler"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

func isArray(id string) bool { return strings.HasPrefix(id, ids.Array+"_") }

// arrayOf is what the jobs of these indices share, which are in ascending order.
func arrayOf(id string, indices []int, limit int) job.Array {
	return job.Array{ID: id, Jobs: len(indices), First: indices[0], Last: indices[len(indices)-1], Limit: limit}
}

// readProgress counts the jobs, and those of the arrays, that are named. What is not there is not among them.
func readProgress(r ledger.Reader, named []string) (map[string]job.Progress, error) {
	var single, arrays []string
	for _, id := range named {
		if isArray(id) {
			arrays = append(arrays, id)
		} else {
			single = append(single, id)
		}
	}
	all := map[string]job.Progress{}
	if len(arrays) > 0 {
		found, err := r.ArrayProgress(arrays)
		if err != nil {
			return nil, err
		}
		all = found
	}
	others, err := r.JobsByID(single)
	for id, other := range others {
		all[id] = job.ProgressOf(other)
	}
	return all, err
}

// groupOf is the bound under which a job starts, if its array has one.
func groupOf(j job.Job) scheduler.Group {
	return scheduler.Group{Name: j.Array.ID, Most: j.Array.Limit}
}

// attemptsOf are the jobs that have GPUs, by their allocations.
func attemptsOf(live []job.Job) map[string]job.Job {
	all := map[string]job.Job{}
	for _, j := range live {
		if j.HasGPUs() {
			all[j.AllocationID] = j
		}
	}
	return all
}

// overLimit are jobs that wait because as many of their arrays have GPUs as may.
func (q queue) overLimit(order []string) []ledger.QueuedJob {
	out := make([]ledger.QueuedJob, 0, len(order))
	for _, id := range order {
		j := q.jobs[id]
		out = append(out, ledger.QueuedJob{Job: j, Code: ledger.WaitsForArray, Detail: limitText(j)})
	}
	return out
}

func limitText(j job.Job) string { return fmt.Sprintf("its array runs %d at once", j.Array.Limit) }

// isArrayFull reports whether as many of a job's array have GPUs as may: another run has started them meanwhile.
func isArrayFull(tx *txn.Tx, j job.Job) (bool, error) {
	if j.Array.Limit == 0 {
		return false, nil
	}
	counted, err := tx.Port.ArrayAttempts([]string{j.Array.ID})
	if err != nil {
		return false, err
	}
	have := counted[j.Array.ID]
	for _, changed := range tx.Change.Jobs {
		if changed.Array.ID != j.Array.ID {
			continue
		}
		stored, err := tx.Port.Job(ledger.Scope{All: true}, changed.ID)
		if ledger.IgnoreMissing(err) != nil {
			return false, fmt.Errorf("reading job %s: %w", changed.ID, err)
		}
		have += job.ProgressOf(changed).WithGPUs - job.ProgressOf(stored).WithGPUs
	}
	return have >= j.Array.Limit, nil
}

// mostPage is how many jobs of an array are read at once.
const mostPage = 500

// correspond returns what a job of each index waits for, where it waits for the job of the same index of another
// array.
func correspond(tx *txn.Tx, c ledger.JobCommand) (map[int][]job.Depends, error) {
	out := map[int][]job.Depends{}
	for at, d := range c.Job.Dependencies {
		if d.Condition != job.AfterCorr {
			continue
		}
		field := fmt.Sprintf("dependencies[%d].condition", at)
		if len(c.Indices) == 0 || !isArray(d.JobID) {
			return nil, &ledger.InvalidError{Field: field, Rule: "must be between two arrays if it is aftercorr",
				Fix: "use afterok, or give an array and the id of an array"}
		}
		byIndex, err := readIndices(tx, d.JobID)
		if err != nil {
			return nil, err
		}
		for _, index := range c.Indices {
			other, found := byIndex[index]
			if !found {
				return nil, &ledger.InvalidError{Field: field, Rule: fmt.Sprintf("must have a job of the same index to wait "+
					"for: array %s has none of index %d", d.JobID, index)}
			}
			out[index] = append(out[index], job.Depends{JobID: other, Condition: job.AfterOK})
		}
	}
	return out, nil
}

// readIndices are the ids of the jobs of an array, by their indices.
func readIndices(tx *txn.Tx, arrayID string) (map[int]string, error) {
	byIndex := map[int]string{}
	for page := (ledger.Page{Limit: mostPage}); ; {
		some, err := tx.Port.Jobs(ledger.Scope{All: true}, ledger.JobFilter{ArrayID: arrayID}, page)
		if err != nil {
			return nil, fmt.Errorf("reading array %s: %w", arrayID, err)
		}
		for _, j := range some {
			byIndex[j.ArrayIndex] = j.ID
		}
		if len(some) < page.Limit {
			return byIndex, nil
		}
		page.After = some[len(some)-1].ID
	}
}

// isOwn reports whether a job, or an array, is one that the actor may see.
func isOwn(tx *txn.Tx, id string) (bool, error) {
	scope := tx.Actor.Scope()
	if isArray(id) {
		some, err := tx.Port.Jobs(scope, ledger.JobFilter{ArrayID: id}, ledger.Page{Limit: 1})
		return len(some) > 0, err
	}
	other, err := txn.FindJob(tx, id)
	if err != nil {
		return false, ledger.IgnoreMissing(err)
	}
	return scope.All || other.OrganizationID == tx.Actor.OrganizationID, nil
}
