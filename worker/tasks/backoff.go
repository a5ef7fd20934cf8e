package tasks

import (
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/provisioners"
)

// patience decides how long a failed task waits: what the provider asked for,
// and a random time up to a bound that doubles with each failure in a row ("full
// jitter", Brooker, "Exponential Backoff And Jitter", AWS, 2015), because tasks
// that failed together must not come back together.
//
// A row counts its runs, and a node is looked at thousands of times, so failures
// in a row are counted here. Losing the count only makes the next try sooner.
type patience struct {
	base, most time.Duration

	mu       sync.Mutex
	chance   *rand.Rand
	failures map[string]int // in a row, by task
}

// remembered bounds the counts that are kept: those of tasks that went on to
// succeed at another worker would stay for ever.
const remembered = 10_000

func (p *patience) delayAfter(task ledger.Task, failure error) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if task.LastError == "" { // its last run went well, wherever that was
		delete(p.failures, task.ID)
	}
	if len(p.failures) >= remembered {
		clear(p.failures)
	}
	bound := p.most
	if n := p.failures[task.ID]; n < 30 { // beyond it the shift overflows, and the bound is long reached
		bound = min(p.most, p.base<<n)
	}
	p.failures[task.ID]++
	wait := p.jitterUpTo(bound)
	var typed *provisioners.Error
	if errors.As(failure, &typed) && typed.Kind == provisioners.KindThrottled {
		wait += typed.RetryAfter
	}
	return wait
}

func (p *patience) jitterUpTo(bound time.Duration) time.Duration {
	if p.chance == nil {
		return bound
	}
	return time.Duration(p.chance.Int64N(int64(bound) + 1))
}

// forgetFailures ends a row of failures.
func (p *patience) forgetFailures(task ledger.Task) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.failures, task.ID)
}
