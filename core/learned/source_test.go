package learned_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/money"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// threeSources are a pool's own source, one that is cheaper and slow, and one
// that is dear and fast.
func threeSources() (p capacity.Pool, own, slow, fast capacity.Offering) {
	own = capacity.Offering{Provisioner: "aws", Region: "r", Type: "own", Price: 10 * money.USD}
	slow = capacity.Offering{Provisioner: "aws", Region: "r", Type: "slow", Price: 5 * money.USD}
	fast = capacity.Offering{Provisioner: "aws", Region: "r", Type: "fast", Price: 40 * money.USD}
	p = capacity.Pool{Provisioner: "aws", Region: "r", Type: "own", Price: 10 * money.USD,
		Alternates: []capacity.Alternate{
			{Offering: slow, Boot50: time.Hour, Boot95: 2 * time.Hour},
			{Offering: fast, Boot50: time.Minute, Boot95: 2 * time.Minute},
		}}
	return p, own, slow, fast
}

func ownBoots() learned.Learned {
	return learned.Learned{Boot: learned.BootTimes{Prior50: 5 * time.Minute, Prior95: 10 * time.Minute}}
}

func TestANodeIsAskedOfTheSourceThatIsCheapestInTime(t *testing.T) {
	t.Parallel()
	p, own, slow, fast := threeSources()
	l := ownBoots()
	l.Created = l.Created.Add(3, time.Hour, noon)
	l.Removed = l.Removed.Add(2, time.Hour, noon)
	for name, tc := range map[string]struct {
		within time.Duration
		want   capacity.Offering
	}{
		"time enough for the slow one": {5 * time.Hour, slow}, "enough for its own": {20 * time.Minute, own},
		"little time": {2 * time.Minute, fast},
	} {
		source, known := l.Choose(p, noon.Add(tc.within), noon)
		require.Equal(t, tc.want, source, name)
		require.Equal(t, l.Of(p, tc.want).Boot, known.Boot, name)
		require.Equal(t, l.Created, known.Created, name+": what was asked for is counted of the pool")
		require.Equal(t, l.Removed, known.Removed, name)
	}
	blocked := l.Refused(p, own, noon, noon, time.Hour)
	source, _ := blocked.Choose(p, noon.Add(20*time.Minute), noon)
	require.Equal(t, fast, source, "its own has nothing")

	p.Alternates = nil
	source, known := blocked.Choose(p, noon, noon)
	require.Equal(t, own, source, "there is no choice")
	require.Equal(t, blocked, known)
}

func TestWhatIsKnownOfASource(t *testing.T) {
	t.Parallel()
	p, own, slow, fast := threeSources()
	l := ownBoots()
	require.Equal(t, learned.SourceLearned{Boot: l.Boot}, l.Of(p, own))
	prior := func(p50, p95 time.Duration) learned.BootTimes { return learned.BootTimes{Prior50: p50, Prior95: p95} }
	require.Equal(t, learned.SourceLearned{Boot: prior(time.Hour, 2*time.Hour)}, l.Of(p, slow))
	gone := capacity.Offering{Provisioner: "gcp"}
	require.Equal(t, learned.SourceLearned{Boot: l.Boot}, l.Of(p, gone),
		"what is no source any more is taken to be like the pool")
	l = l.Booted(p, own, time.Minute, noon)
	require.Equal(t, l.Boot, l.Of(p, own).Boot)
	require.Equal(t, prior(5*time.Minute, 10*time.Minute), l.Of(p, gone).Boot, "but for what was seen")
	require.Equal(t, prior(time.Minute, 2*time.Minute), l.Of(p, fast).Boot)
}

// What happens to one source is learned of it alone.
func TestASourceLearnsForItself(t *testing.T) {
	t.Parallel()
	p, own, slow, fast := threeSources()
	for name, learn := range map[string]func(learned.Learned, capacity.Offering) learned.Learned{
		"booted": func(l learned.Learned, s capacity.Offering) learned.Learned {
			return l.Booted(p, s, time.Minute,
				noon)
		},
		"served": func(l learned.Learned, s capacity.Offering) learned.Learned { return l.Served(p, s, noon) },
		"refused": func(l learned.Learned, s capacity.Offering) learned.Learned {
			return l.Refused(p, s, noon, noon, time.Minute)
		},
		"unfit": func(l learned.Learned, s capacity.Offering) learned.Learned {
			return l.FailedGate(p, s, noon, noon, time.Minute, "ecc")
		},
	} {
		for _, s := range []capacity.Offering{own, slow, fast} {
			l := ownBoots()
			l.Sources = map[string]learned.SourceLearned{fast.Key(): {Boot: learned.BootTimes{Prior50: time.Second}}}
			before := l.Of(p, s)
			next := learn(l, s)
			for _, other := range []capacity.Offering{own, slow, fast} {
				if other == s {
					require.NotEqual(t, before, next.Of(p, other), "%s %s", name, s.Type)
				} else {
					require.Equal(t, l.Of(p, other), next.Of(p, other), "%s %s", name, s.Type)
				}
			}
			require.Equal(t, before, l.Of(p, s), "%s: what was known before is not changed", name)
			require.Equal(t, name == "booted", len(next.Of(p, s).Boot.Seen) == 1, name)
			require.Equal(t, name == "refused" || name == "unfit", next.Of(p, s).BlockedUntil.After(noon), name)
		}
	}
}

func TestAStoppedSourceIsAskedAgainAfterAChange(t *testing.T) {
	t.Parallel()
	p, own, slow, fast := threeSources()
	l := ownBoots()
	for range 2 {
		l = l.FailedGate(p, own, noon, noon, time.Minute, "driver").FailedGate(p, slow, noon, noon, time.Minute, "ecc")
	}
	l = l.FailedGate(p, fast, noon, noon, time.Minute, "ecc")
	stopped := []string{l.Stopped(), l.Of(p, slow).Stopped(), l.Of(p, fast).Stopped()}
	require.Equal(t, []string{"driver", "ecc", ""}, stopped)
	require.True(t, l.BlockedUntil.After(noon.AddDate(99, 0, 0)), "as long as for ever")
	again := l.RetryStopped(p)
	require.Empty(t, again.Stopped())
	require.Empty(t, again.Of(p, slow).Stopped())
	require.Zero(t, again.BlockedUntil)
	require.Equal(t, l.Of(p, fast), again.Of(p, fast), "one that was not stopped waits as before")
	require.Equal(t, l.Of(p, own).Boot, again.Of(p, own).Boot)
}

func TestAnotherFaultCountsAnew(t *testing.T) {
	t.Parallel()
	var s learned.Supply
	for i, tc := range []struct{ fault, stopped string }{
		{"ecc", ""}, {"driver", ""}, {"ecc", ""}, {"ecc", "ecc"}, {"ecc", "ecc"},
	} {
		s = s.FailedGate(noon, noon, time.Minute, tc.fault)
		require.Equal(t, tc.stopped, s.Stopped(), i)
	}
	require.Empty(t, s.Ready(noon).Stopped(), "one that is ready ends it")
}

// Each block is twice as long as the one before, up to 16 times the first; what
// was asked for before a block began is refused for the same reason.
func TestBlocksDoubleForWhatWasAskedAfterThem(t *testing.T) {
	t.Parallel()
	const ttl = 10 * time.Minute
	at := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Minute) }
	var s learned.Supply
	for i, tc := range []struct{ asked, now, blocks, until int }{
		{0, 1, 1, 11}, {0, 2, 1, 11}, {1, 3, 2, 23}, {2, 4, 2, 23}, {3, 5, 3, 45}, {4, 6, 3, 45}, {46, 50, 4, 130},
		{130, 130, 5, 290}, {290, 290, 6, 450}, {289, 300, 6, 450}, {290, 300, 7, 460},
	} {
		s = s.Failed(at(tc.asked), at(tc.now), ttl)
		require.Equal(t, []int{i + 1, tc.blocks}, []int{s.Failures, s.Blocks}, "refusal %d", i)
		require.Equal(t, at(tc.until), s.BlockedUntil, "refusal %d", i)
	}
	require.Equal(t, learned.Open, s.Breaker(11, at(459)))
	require.Equal(t, learned.HalfOpen, s.Breaker(11, at(460)))
	require.Equal(t, learned.Closed, s.Breaker(12, at(459)))
	s = learned.Supply{BlockedUntil: at(60)}.Failed(noon, noon, ttl)
	require.Equal(t, at(10), s.BlockedUntil, "a block that no refusal made")
	once := learned.Supply{}.FailedGate(noon, noon, ttl, "ecc")
	require.Equal(t, at(10), once.BlockedUntil, "one machine that is not fit stops nothing")
	require.True(t, once.FailedGate(noon, noon, ttl, "ecc").BlockedUntil.After(noon.AddDate(99, 0, 0)))
}
