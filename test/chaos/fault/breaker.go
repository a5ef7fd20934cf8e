package fault

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/forewarm/forewarm/test/chaos/site"
)

// Breaker strikes a site. It is safe for concurrent use.
type Breaker struct {
	site *site.Site
	log  func(string)

	mu     sync.Mutex
	broken map[string]bool // what is broken now
	struck map[Kind]int
	errs   []error
}

// New returns a breaker of the site; log is told of every fault.
func New(s *site.Site, log func(string)) *Breaker {
	return &Breaker{site: s, log: log, broken: map[string]bool{}, struck: map[Kind]int{}}
}

// injection is one fault while it lasts.
type injection struct {
	site   *site.Site
	chance *rand.Rand
	owner  *Breaker
	target string
}

// claimTarget claims a target, and reports whether nobody else breaks it now.
func (b *injection) claimTarget(target string) bool {
	b.owner.mu.Lock()
	defer b.owner.mu.Unlock()
	if b.owner.broken[target] {
		return false
	}
	b.owner.broken[target], b.target = true, target
	return true
}

func (b *injection) releaseTarget() {
	b.owner.mu.Lock()
	defer b.owner.mu.Unlock()
	delete(b.owner.broken, b.target)
}

// Run carries the schedule out. It returns when the last fault is mended; when
// ctx ends, that is at once.
func (b *Breaker) Run(ctx context.Context, plan []Planned) error {
	begun := time.Now()
	var striking sync.WaitGroup
	for _, p := range plan {
		if !sleepFor(ctx, time.Until(begun.Add(p.At))) {
			break
		}
		striking.Go(func() { b.injectFault(ctx, p) })
	}
	striking.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	return errors.Join(b.errs...)
}

func (b *Breaker) injectFault(ctx context.Context, p Planned) {
	hit := &injection{site: b.site, owner: b,
		chance: rand.New(rand.NewPCG(p.Seed, 2))} //nolint:gosec // a run is to be repeatable
	defer hit.releaseTarget()
	whole := context.WithoutCancel(ctx) // what is broken is mended, also at the end
	what, end, err := kinds[p.Kind].begin(whole, hit)
	if err != nil {
		b.recordError(p.Kind, err)
	}
	if what == "" {
		return // all of it is broken already
	}
	b.mu.Lock()
	b.struck[p.Kind]++
	b.mu.Unlock()
	if end == nil {
		b.log(fmt.Sprintf("%s: %s", p.Kind, what))
		return
	}
	b.log(fmt.Sprintf("%s: %s, for %v", p.Kind, what, p.For.Round(100*time.Millisecond)))
	sleepFor(ctx, p.For)
	if err := end(whole); err != nil {
		b.recordError(p.Kind, err)
	}
}

func (b *Breaker) recordError(kind Kind, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.errs = append(b.errs, fmt.Errorf("%s: %w", kind, err))
}

// Struck is how often each kind of fault struck so far.
func (b *Breaker) Struck() map[Kind]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.struck)
}

// Broken is what is broken now, sorted.
func (b *Breaker) Broken() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(maps.Keys(b.broken))
}

// sleepFor reports whether the time is over, and not ctx.
func sleepFor(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
