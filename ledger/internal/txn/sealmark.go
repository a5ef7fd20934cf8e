package txn

import (
	"sync"
	"time"
)

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
