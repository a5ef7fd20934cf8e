package wait_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/wait"
)

const stockOut = 3 * time.Minute

// stockOutModel is a provider that has nothing at times, as its askers see it.
type stockOutModel struct {
	*rand.Rand
	supply learned.Supply
	now    time.Time
	out    time.Time // until then there is nothing
}

func (s *stockOutModel) drawExponential(mean time.Duration) time.Duration {
	return time.Duration(s.ExpFloat64() * float64(mean))
}

// askProvider asks once, and reports whether a node was given.
func (s *stockOutModel) askProvider() bool {
	if s.now.Before(s.out) {
		s.supply = s.supply.Failed(s.now, s.now, stockOut)
		return false
	}
	s.supply = s.supply.Ready(s.now)
	return true
}

// waitFacts are those of one missing node now.
func (s *stockOutModel) waitFacts(boots learned.BootTimes) wait.Facts {
	f := wait.Facts{Missing: 1, Boot: boots, Blocked: max(0, s.supply.BlockedUntil.Sub(s.now))}
	if s.supply.Blocks > 0 {
		f.Stock = &wait.StockOut{Odds: s.supply.Odds(s.now), Refused: s.supply.Blocks, Block: stockOut}
	}
	return f
}

// coverage counts how often the truth lay within what was said.
type coverage struct{ asked, below10, below90 int }

func (c *coverage) noteEstimate(e wait.Estimate, left time.Duration) {
	c.asked++
	if left <= e.P10 {
		c.below10++
	}
	if left <= e.P90 {
		c.below90++
	}
}

func (c *coverage) checkCoverage(t *testing.T, name string) {
	t.Helper()
	require.Greater(t, c.asked, 200, name)
	require.GreaterOrEqual(t, float64(c.below90)/float64(c.asked), 0.85, name)
	require.GreaterOrEqual(t, float64(c.below90-c.below10)/float64(c.asked), 0.7, name)
}

// Whoever asks in a stock-out is told a time that covers it, however long those
// last here: it does not assume that the next time there is something.
func TestTheIntervalCoversStockOuts(t *testing.T) {
	t.Parallel()
	for name, mean := range map[string]time.Duration{"minutes": 5 * time.Minute, "half hours": 30 * time.Minute,
		"hours": 2 * time.Hour} {
		s := &stockOutModel{Rand: rand.New(rand.NewPCG(uint64(mean), 3)),
			now: time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)}
		boots, source := learned.BootTimes{Prior50: time.Minute, Prior95: 5 * time.Minute},
			noisyBoots(uint64(mean), 2*time.Minute)
		var count coverage
		for range 600 {
			s.now = s.now.Add(s.drawExponential(4 * time.Hour))
			s.out = s.now.Add(s.drawExponential(mean))
			type told struct {
				at time.Time
				e  wait.Estimate
			}
			var all []told
			for !s.askProvider() {
				next := s.supply.BlockedUntil
				s.now = s.now.Add(time.Duration(s.Float64() * float64(next.Sub(s.now))))
				all = append(all, told{s.now, wait.EstimateFrom(s.waitFacts(boots))})
				s.now = next
			}
			took := source()
			boots = boots.Learn(took)
			for _, x := range all {
				count.noteEstimate(x.e, s.now.Add(took).Sub(x.at))
			}
		}
		count.checkCoverage(t, name)
	}
}

// Where the only machine is held by another lease, its end is what is waited for.
func TestTheIntervalCoversTheOnlyMachine(t *testing.T) {
	t.Parallel()
	s := &stockOutModel{Rand: rand.New(rand.NewPCG(5, 3)), now: time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)}
	boots := learned.BootTimes{Prior50: 5 * time.Second, Prior95: 10 * time.Second}
	var used learned.LeaseUse
	var count coverage
	for range 600 {
		lease, start := time.Hour, s.now
		end := start.Add(time.Duration((0.3 + 0.7*s.Float64()) * float64(lease)))
		s.out = end
		s.now = start.Add(time.Duration(s.Float64() * float64(end.Sub(start))))
		require.False(t, s.askProvider())
		for tries := s.IntN(3); tries > 0 && s.supply.BlockedUntil.Before(end); tries-- {
			s.now = s.supply.BlockedUntil
			s.askProvider()
		}
		f := s.waitFacts(boots)
		f.Leases, f.Turn = used, 1
		f.Instead = []wait.Place{{Room: start.Add(lease).Sub(s.now),
			Holds: []wait.Hold{{Age: s.now.Sub(start), Lease: lease}}}}
		if e := wait.EstimateFrom(f); len(used.Seen) > 20 {
			require.LessOrEqual(t, e.P90, f.Instead[0].Room+time.Second, "the lease is over then at the latest")
			count.noteEstimate(e, end.Sub(s.now))
		}
		used = used.Learn(end.Sub(start), lease)
		s.now = end.Add(time.Minute)
		s.askProvider()
	}
	count.checkCoverage(t, "the only machine")
}

func noisyBoots(seed uint64, median time.Duration) func() time.Duration {
	chance := rand.New(rand.NewPCG(seed, 0))
	return func() time.Duration {
		return time.Duration(float64(median) * math.Exp(0.2*chance.NormFloat64()))
	}
}
