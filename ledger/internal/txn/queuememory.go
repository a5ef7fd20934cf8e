package txn

import (
	"fmt"
	"hash/fnv"
	"sync"
	"time"

	"github.com/forewarm/forewarm/ledger"
)

// QueueMemory has the queues of pools as they were last told, predictions included, so that many who look at once cost
// what one does. It can be lost at any time, and is safe for concurrent use.
type QueueMemory struct {
	mu    sync.Mutex
	pools map[string]*toldQueue
}

// toldQueue is what was told of one pool. Its mutex is held while the queue is made.
type toldQueue struct {
	mu    sync.Mutex
	of    queueVersion
	at    time.Time
	queue []ledger.QueuedJob

	foretold time.Time // when starts were predicted last to be scored; guarded by the mutex of all
	foreseen time.Time // when it was looked last for whom nodes are to be ready; guarded by the mutex of all
}

// queueVersion is the state of a pool and of its jobs that are not over. What else a queue rests on, such as how long
// others ran, may be some seconds old.
type queueVersion struct {
	pool int64
	jobs uint64
}

const (
	keepQueue      = 2 * time.Second
	mostQueuePools = 1000
)

// NewQueueMemory returns one that knows nothing.
func NewQueueMemory() *QueueMemory { return &QueueMemory{pools: map[string]*toldQueue{}} }

// QueueOf returns the queue of a pool as it is made, or as it was made up to two seconds ago, if neither the pool nor
// its jobs have changed since. Nothing of it may be changed.
func (m *QueueMemory) QueueOf(r ledger.Reader, poolID string, produce func() ([]ledger.QueuedJob, error)) (
	[]ledger.QueuedJob, error) {
	is, err := versionOf(r, poolID)
	if err != nil {
		return nil, err
	}
	told := m.of(poolID)
	told.mu.Lock()
	defer told.mu.Unlock()
	if !told.at.IsZero() && told.of == is && r.Now().Sub(told.at).Abs() < keepQueue {
		return told.queue, nil
	}
	queue, err := produce()
	if err == nil {
		told.of, told.at, told.queue = is, r.Now(), queue
	}
	return queue, err
}

// Foretold is when starts in a pool were predicted last to be scored; zero: nobody here remembers.
func (m *QueueMemory) Foretold(poolID string) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.find(poolID).foretold
}

// NoteForetold notes that they were.
func (m *QueueMemory) NoteForetold(poolID string, at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.find(poolID).foretold = at
}

// Foreseen is when it was looked last for whom nodes of a pool are to be ready that may not start yet; zero: nobody
// here remembers.
func (m *QueueMemory) Foreseen(poolID string) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.find(poolID).foreseen
}

// NoteForeseen notes that it was.
func (m *QueueMemory) NoteForeseen(poolID string, at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.find(poolID).foreseen = at
}

func (m *QueueMemory) of(poolID string) *toldQueue {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.find(poolID)
}

// find is of, with the mutex of all held.
func (m *QueueMemory) find(poolID string) *toldQueue {
	told := m.pools[poolID]
	if told == nil {
		if len(m.pools) >= mostQueuePools {
			clear(m.pools)
		}
		told = &toldQueue{}
		m.pools[poolID] = told
	}
	return told
}

func versionOf(r ledger.Reader, poolID string) (queueVersion, error) {
	p, err := r.Pool(poolID)
	if err != nil {
		return queueVersion{}, fmt.Errorf("reading pool %s: %w", poolID, err)
	}
	versions, err := r.LiveJobVersions(poolID)
	if err != nil {
		return queueVersion{}, err
	}
	hash := fnv.New64a()
	for _, v := range versions {
		_, _ = fmt.Fprintln(hash, v.ID, v.Version)
	}
	return queueVersion{p.Revision, hash.Sum64()}, nil
}
