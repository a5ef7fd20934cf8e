package txn

import (
	"sync"
	"time"

	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/runtimes"
	"github.com/forewarm/forewarm/ledger"
)

// JobMemory has the jobs of pools that are not over as they were last read, so that of a long queue only what has
// changed is read again, and for how long others ran, as of
// a moment ago. It can be lost at any time, and is safe for concurrent use.
type JobMemory struct {
	mu    sync.Mutex
	pools map[string][]job.Job // ordered by id, none of them changed any more
	runs  map[runsKey]runsRead
}

// runsKey is an organization, and a name of jobs; empty: all.
type runsKey struct{ organizationID, name string }

type runsRead struct {
	at   time.Time
	runs []runtimes.Run
}

const (
	keepRuns    = 30 * time.Second
	mostRunKeys = 1000
)

// NewJobMemory returns one that knows nothing.
func NewJobMemory() *JobMemory {
	return &JobMemory{pools: map[string][]job.Job{}, runs: map[runsKey]runsRead{}}
}

// Runs returns for how long jobs of an organization and a name ran, as read returns it, or as it did up to half a
// minute ago. Nothing of it may be changed.
func (m *JobMemory) Runs(organizationID, name string, now time.Time, read func() ([]runtimes.Run, error)) (
	[]runtimes.Run, error) {
	key := runsKey{organizationID, name}
	m.mu.Lock()
	known, found := m.runs[key]
	m.mu.Unlock()
	if found && now.Sub(known.at).Abs() < keepRuns {
		return known.runs, nil
	}
	runs, err := read()
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.runs) >= mostRunKeys {
		clear(m.runs)
	}
	m.runs[key] = runsRead{now, runs}
	return runs, nil
}

// LiveJobs returns the jobs of a pool that are not over, ordered by id, without their commands. Nothing of them may be
// changed.
func (m *JobMemory) LiveJobs(r ledger.Reader, poolID string) ([]job.Job, error) {
	versions, err := r.LiveJobVersions(poolID)
	if err != nil {
		return nil, err
	}
	known := m.get(poolID)
	all := make([]job.Job, 0, len(versions))
	var missing []string
	for _, v := range versions {
		for len(known) > 0 && known[0].ID < v.ID {
			known = known[1:]
		}
		if len(known) > 0 && known[0].ID == v.ID && known[0].Version == v.Version {
			all = append(all, known[0])
			continue
		}
		all = append(all, job.Job{ID: v.ID})
		missing = append(missing, v.ID)
	}
	if err := readMissing(r, poolID, all, missing); err != nil {
		return nil, err
	}
	m.put(poolID, all)
	return all, nil
}

// readMissing puts those of the jobs in their places that are not known.
func readMissing(r ledger.Reader, poolID string, all []job.Job, missing []string) error {
	if len(missing) == 0 {
		return nil
	}
	found := map[string]job.Job{}
	if len(missing) > len(all)/2 {
		live, err := r.LiveJobs(poolID)
		if err != nil {
			return err
		}
		for _, j := range live {
			found[j.ID] = j
		}
	} else {
		var err error
		if found, err = r.JobsByID(missing); err != nil {
			return err
		}
	}
	for i := range all {
		if all[i].Version == 0 {
			all[i] = found[all[i].ID]
			all[i].Command = job.Command{} // which may be large
		}
	}
	return nil
}

func (m *JobMemory) get(poolID string) []job.Job {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.pools[poolID]
}

// put remembers the jobs of a pool, and forgets one of which none is left.
func (m *JobMemory) put(poolID string, all []job.Job) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(all) == 0 {
		delete(m.pools, poolID)
		return
	}
	m.pools[poolID] = all
}
