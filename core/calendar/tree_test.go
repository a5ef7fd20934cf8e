package calendar_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/calendar"
)

// crowdedProfile adds many entries, so that the tree has several levels, and
// takes some back. The generator is seeded by rapid, which shrinks the numbers.
func crowdedProfile(t *rapid.T) (*calendar.Profile, []entry) {
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	span := rapid.SampledFrom([]int{20, 400, 4000}).Draw(t, "span")
	var p calendar.Profile
	var kept []entry
	for range rapid.IntRange(0, 900).Draw(t, "entries") {
		if len(kept) > 0 && rng.IntN(5) < 2 {
			i := rng.IntN(len(kept))
			p.Add(kept[i].iv, -kept[i].n)
			kept = slices.Delete(kept, i, i+1)
			continue
		}
		from := rng.IntN(span)
		e := entry{hours(from, from+rng.IntN(1+span/8)), rng.IntN(9) - 1}
		p.Add(e.iv, e.n)
		kept = append(kept, e)
	}
	return &p, kept
}

// countAgain returns the level of each hour up to the last change.
func countAgain(entries []entry) []int {
	levels := make([]int, 4600)
	for _, e := range entries {
		for h := e.iv.Start; h.Before(e.iv.End); h = h.Add(time.Hour) {
			levels[int(h.Sub(monday)/time.Hour)] += e.n
		}
	}
	return levels
}

func TestCrowdedProfileEqualsARecount(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p, kept := crowdedProfile(t)
		levels := countAgain(kept)
		changes := []time.Time{}
		for h := 1; h < len(levels); h++ {
			if levels[h] != levels[h-1] {
				changes = append(changes, at(h))
			}
		}
		if levels[0] != 0 {
			changes = slices.Insert(changes, 0, at(0))
		}
		require.Equal(t, changes, p.Changes())
		for range 20 {
			from := rapid.IntRange(0, 4500).Draw(t, "from")
			to := from + rapid.IntRange(1, len(levels)-from).Draw(t, "length")
			require.Equal(t, levels[from], p.At(at(from)))
			require.Equal(t, slices.Max(levels[from:to]), p.Peak(hours(from, to)))
			i, _ := slices.BinarySearchFunc(changes, at(from).Add(1), time.Time.Compare)
			next, ok := p.Next(at(from))
			require.Equal(t, i < len(changes), ok)
			if ok {
				require.Equal(t, changes[i], next)
			}
		}
	})
}

func TestFirstFitIsTheFirst(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p, kept := crowdedProfile(t)
		levels := countAgain(kept)
		for range 10 {
			from := rapid.IntRange(0, 4000).Draw(t, "from")
			until := from + rapid.IntRange(-1, 300).Draw(t, "until")
			length := rapid.IntRange(1, 100).Draw(t, "length")
			limit := rapid.IntRange(-1, max(1, slices.Max(levels))+2).Draw(t, "limit")
			n := rapid.IntRange(0, 2).Draw(t, "n")
			want, found := from, false
			for ; want <= until && !found; want++ {
				found = slices.Max(levels[want:want+length])+n <= limit
			}
			got, ok := p.FirstFit(limit, n, time.Duration(length)*time.Hour, at(from), at(until))
			require.Equal(t, found, ok)
			if ok {
				require.Equal(t, at(want-1), got)
			}
		}
	})
}

func TestAVectorProfileIsItsDimensions(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var vectors calendar.VectorProfile
		var single [5]calendar.Profile
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
		for range rapid.IntRange(0, 200).Draw(t, "entries") {
			from := rng.IntN(300)
			iv := hours(from, from+rng.IntN(40))
			var v calendar.Vector
			for d := range v {
				v[d] = int64(rng.IntN(4) - 1)
				single[d].Add(iv, int(v[d]))
			}
			vectors.Add(iv, v)
		}
		from := rapid.IntRange(0, 320).Draw(t, "from")
		iv := hours(from, from+rapid.IntRange(0, 50).Draw(t, "length"))
		limit := calendar.Vector{3, 3, 3, 3, 3}
		start, ok := vectors.FirstFit(limit, calendar.Vector{}, 5*time.Hour, at(from), at(2000))
		require.True(t, ok, "in the end all is over")
		for d := range limit {
			require.Equal(t, single[d].Peak(iv), int(vectors.Peak(iv)[d]))
			require.Equal(t, single[d].At(at(from)), int(vectors.At(at(from))[d]))
			require.LessOrEqual(t, single[d].Peak(calendar.Interval{Start: start, End: start.Add(5 * time.Hour)}), 3)
		}
	})
}

func TestMemoryOfAProfileIsUsedAgain(t *testing.T) {
	t.Parallel()
	var p calendar.Profile
	fill := func(sign int) {
		for i := range 5000 {
			p.Add(hours(i, 2*i+1), sign*(1+i%7))
		}
	}
	fill(1)
	held, used := p.Pages()
	require.Equal(t, held, used)
	for range 3 {
		fill(-1)
		require.Empty(t, p.Changes())
		_, used = p.Pages()
		require.Equal(t, 1, used)
		fill(1)
	}
	again, _ := p.Pages()
	require.Equal(t, held, again)
}

func TestInstantsThatCannotBeCounted(t *testing.T) {
	t.Parallel()
	var p calendar.Profile
	p.Add(calendar.Interval{Start: time.Time{}, End: monday}, 3)
	p.Add(calendar.Interval{Start: monday, End: monday.AddDate(5000, 0, 0)}, 5)
	require.Equal(t, 3, p.At(monday.AddDate(-1, 0, 0)))
	require.Equal(t, 5, p.Peak(calendar.Interval{Start: monday.AddDate(-1, 0, 0), End: monday.AddDate(1, 0, 0)}))
	_, ok := p.FirstFit(4, 0, time.Hour, monday, monday.AddDate(10, 0, 0))
	require.False(t, ok)
	p.Add(calendar.Interval{Start: time.Time{}, End: monday}, -3)
	p.Add(calendar.Interval{Start: monday, End: monday.AddDate(5000, 0, 0)}, -5)
	require.Empty(t, p.Changes())
}
