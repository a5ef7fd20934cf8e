package auth

import (
	"context"
	"math"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
)

// The bounds of what strangers can make a process write into the journal: of one
// minute mostRows, of a long time one row a minute and the sum of the rest.
const (
	mostRows  = 20
	rowsBurst = 60
	rowsRate  = 1.0 / 60
	mostPairs = 10_000 // that are told apart within a minute
)

// Failures counts sign-ins that failed, for the journal. It is safe for
// concurrent use.
type Failures struct {
	clock clock.Clock
	rows  *Limiter

	mu    sync.Mutex
	since time.Time
	count map[ledger.FailedLogin]int // by what is the same about them
}

// NewFailures returns an empty count.
func NewFailures(c clock.Clock) *Failures {
	return &Failures{clock: c, rows: NewLimiter(Rate{PerSecond: rowsRate, Burst: rowsBurst}, c),
		count: map[ledger.FailedLogin]int{}}
}

// Note counts one failure at a door, such as "api". The prefix is that of the
// key, without its secret, or empty.
func (f *Failures) Note(door, prefix string, from netip.Addr) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.count) == 0 {
		f.since = f.clock.Now()
	}
	same := ledger.FailedLogin{Door: door, KeyPrefix: prefix, From: from}
	if _, ok := f.count[same]; !ok && len(f.count) >= mostPairs {
		same = ledger.FailedLogin{Door: door}
	}
	f.count[same]++
}

// Flush writes what was counted into the journal: a row for each key and
// address, the most frequent ones first, and one for all that are too many to
// list. What could not be written is counted on.
func (f *Failures) Flush(ctx context.Context, l *verbs.Ledger) error {
	f.mu.Lock()
	count, since := f.count, f.since
	f.count = map[ledger.FailedLogin]int{}
	f.mu.Unlock()
	if len(count) == 0 {
		return nil
	}
	if err := l.RecordFailedLogins(ctx, f.summarize(count, since)); err != nil {
		f.restoreCounts(count, since)
		return err
	}
	return nil
}

// summarize orders what was counted and sums up what there is no row for.
func (f *Failures) summarize(count map[ledger.FailedLogin]int, since time.Time) []ledger.FailedLogin {
	var all, listed []ledger.FailedLogin
	for same, n := range count {
		same.Count, same.Since, same.Until = n, since, f.clock.Now()
		all = append(all, same)
	}
	slices.SortFunc(all, ledger.FailedLogin.Compare)
	for len(all) > 0 && len(listed) < mostRows && all[0].From.IsValid() {
		if ok, _ := f.rows.Allow(""); !ok {
			break
		}
		listed, all = append(listed, all[0]), all[1:]
	}
	if len(all) == 0 {
		return listed
	}
	rest := ledger.FailedLogin{Since: since, Until: f.clock.Now()}
	for _, one := range all {
		rest.Count = min(rest.Count, math.MaxInt-one.Count) + one.Count
	}
	return append(listed, rest)
}

func (f *Failures) restoreCounts(count map[ledger.FailedLogin]int, since time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.since = since
	for same, n := range count {
		f.count[same] += n
	}
}
