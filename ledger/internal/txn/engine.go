package txn

import (
	"sync"
	"time"

	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
)

// Engine is what all verbs work with: the store, and the transactions over it.
type Engine struct {
	Store   ledger.Store
	IDs     ids.Source
	Config  ledger.Config
	commits *groupCommit
	gates   *gates
	// batches commits the large batches; nil: they share this engine's transactions.
	batches *Engine
	// beside are the gates of the engine that this one has the large batches of; nil
	// in any other.
	beside *gates
	// joined is the transaction that its verbs work in; nil: each begins its own.
	joined *Tx
	// IsDryRun is set where nothing is kept: then refusals leave no event.
	IsDryRun  bool
	Cache     *poolCache
	LiveJobs  *JobMemory
	Queues    *QueueMemory
	SealWatch *sealWatch
	refusals  *refusals
	// oldAnswers are those that were stored when answers were an organization's.
	oldAnswers *oldAnswers
}

// NewEngine returns an engine with a memory of its own. Large batches have another
// with a memory of its own, as if a second process served them: nobody else waits
// until one is decided.
func NewEngine(store ledger.Store, source ids.Source, cfg ledger.Config) *Engine {
	l := NewSingleEngine(store, source, cfg)
	batches := *l
	batches.commits, batches.gates, batches.Cache = &groupCommit{}, newGates(), newPoolCache()
	batches.beside = l.gates
	l.batches = &batches
	return l
}

// NewSingleEngine returns an engine that commits everything in one queue.
func NewSingleEngine(store ledger.Store, source ids.Source, cfg ledger.Config) *Engine {
	return &Engine{Store: store, IDs: source, Config: cfg.WithDefaults(), Cache: newPoolCache(),
		LiveJobs: NewJobMemory(), Queues: NewQueueMemory(), refusals: &refusals{}, commits: &groupCommit{}, gates: newGates(),
		SealWatch: &sealWatch{}, oldAnswers: &oldAnswers{}}
}

// Waiting returns how many verbs wait for their turn, and how many for rows that
// somebody else holds, a large batch of this process among them.
func (l *Engine) Waiting() (turn, row int) {
	for _, e := range []*Engine{l, l.batches} {
		if e != nil {
			turn, row = turn+e.commits.countQueued(), row+e.gates.countWaiting()
		}
	}
	return turn, row
}

// sealWatch is when a process last told that the journal is behind.
type sealWatch struct {
	mu   sync.Mutex
	told time.Time
}

// tellEvery is how often one process tells it at most.
const tellEvery = time.Minute

func (w *sealWatch) MayTell(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.told.IsZero() && now.Sub(w.told) < tellEvery {
		return false
	}
	w.told = now
	return true
}
