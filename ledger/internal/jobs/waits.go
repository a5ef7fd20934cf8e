package jobs

import (
	"fmt"
	"slices"

	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/ledger"
)

// WhyWaiting says of those of some jobs that are pending why they wait, by id, as the queues of their pools do, without
// their places there. It costs a look at a whole queue only where arrays wait of which only so many may have GPUs.
func (l Jobs) WhyWaiting(r ledger.Reader, some []job.Job) (map[string]ledger.QueuedJob, error) {
	pending := waiting(some)
	if len(pending) == 0 {
		return nil, nil //nolint:nilnil // none waits
	}
	progress, err := readProgress(r, dependenciesOf(pending))
	if err != nil {
		return nil, err
	}
	q := queue{now: r.Now(), jobs: map[string]job.Job{}, usable: map[string]usable{}}
	if q.pools, err = readPoolsOf(r, pending); err != nil {
		return nil, err
	}
	if q.seen, err = readSeen(r, q.pools); err != nil {
		return nil, err
	}
	for _, j := range pending {
		q.add(j, progress)
	}
	if err := q.readWeights(r); err != nil {
		return nil, err
	}
	why := make(map[string]ledger.QueuedJob, len(pending))
	for _, w := range q.later {
		why[w.ID] = w
	}
	var bounded []string // pools
	for id, j := range q.jobs {
		why[id] = waitingNow(q, j)
		if j.Array.Limit > 0 && !slices.Contains(bounded, j.PoolID) {
			bounded = append(bounded, j.PoolID)
		}
	}
	for _, poolID := range bounded {
		if err := noteOverLimit(l, r, poolID, why); err != nil {
			return nil, err
		}
	}
	return why, nil
}

// noteOverLimit notes which jobs of a pool wait because as many of their arrays have GPUs, or come before them, as may.
func noteOverLimit(l Jobs, r ledger.Reader, poolID string, why map[string]ledger.QueuedJob) error {
	q, err := l.readQueue(r, poolID)
	if err != nil {
		return err
	}
	s, err := q.scheduler()
	if err != nil {
		return fmt.Errorf("preparing the scheduler: %w", err)
	}
	_, mayNot := s.Within(s.Order(q.now))
	for _, over := range q.overLimit(mayNot) {
		if _, asked := why[over.ID]; asked {
			why[over.ID] = over
		}
	}
	return nil
}

// readPoolsOf reads the pools of some jobs, by id.
func readPoolsOf(r ledger.Reader, all []job.Job) (map[string]ledger.PoolState, error) {
	pools := map[string]ledger.PoolState{}
	for _, j := range all {
		if _, known := pools[j.PoolID]; known {
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
