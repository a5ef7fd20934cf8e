package jobs

import (
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/ledger"
)

// WhyWaiting says of those of some jobs that are pending why they wait, by id, as far as that can be told without the
// queue of their pools: it costs what they depend on, and no place in a queue.
func WhyWaiting(r ledger.Reader, some []job.Job) (map[string]ledger.QueuedJob, error) {
	pending := waiting(some)
	if len(pending) == 0 {
		return nil, nil //nolint:nilnil // none waits
	}
	progress, err := readProgress(r, dependenciesOf(pending))
	if err != nil {
		return nil, err
	}
	attempts, err := r.ArrayAttempts(boundedArrays(pending))
	if err != nil {
		return nil, err
	}
	q := queue{now: r.Now(), jobs: map[string]job.Job{}, usable: map[string]int{}}
	if q.pools, err = readPoolsAsked(r, pending); err != nil {
		return nil, err
	}
	for _, j := range pending {
		q.add(j, progress)
	}
	why := make(map[string]ledger.QueuedJob, len(pending))
	for _, w := range q.later {
		why[w.ID] = w
	}
	for id, j := range q.jobs {
		why[id] = ledger.QueuedJob{Job: j, Code: ledger.WaitsForGPUs}
		if most := j.Array.Limit; most > 0 && attempts[j.Array.ID] >= most {
			why[id] = ledger.QueuedJob{Job: j, Code: ledger.WaitsForArray, Detail: limitText(j)}
		}
	}
	return why, nil
}

// boundedArrays are the arrays of jobs of which only so many have GPUs at once.
func boundedArrays(all []job.Job) (out []string) {
	seen := map[string]bool{}
	for _, j := range all {
		if id := j.Array.ID; j.Array.Limit > 0 && !seen[id] {
			seen[id] = true
			out = append(out, id)
		}
	}
	return out
}

// readPoolsAsked reads the pools of jobs that ask for more than GPUs, by id.
func readPoolsAsked(r ledger.Reader, all []job.Job) (map[string]ledger.PoolState, error) {
	pools := map[string]ledger.PoolState{}
	for _, j := range all {
		if _, known := pools[j.PoolID]; known || len(j.Where.Constraints)+len(j.Where.Excludes)+len(j.Avoids) == 0 {
			continue
		}
		state, err := r.LiveState(j.PoolID)
		if err != nil {
			return nil, err
		}
		pools[j.PoolID] = state
	}
	return pools, nil
}
