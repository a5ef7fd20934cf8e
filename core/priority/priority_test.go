package priority_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/priority"
)

var monday = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)

func hours(n int) time.Time { return monday.Add(time.Duration(n) * time.Hour) }

type order = func(a, b priority.Claimant) int

var orders = map[string]order{
	"ServeByShare":   priority.ServeByShare,
	"ServeByStart":   priority.ServeByStart,
	"ServeByArrival": priority.ServeByArrival,
	"YieldByShare":   priority.YieldByShare,
}

// Each policy as a table: what decides, over everything that comes after it.
func TestPolicies(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		compare order
		first   priority.Claimant
		second  priority.Claimant
	}{
		"a promise is served before speculation, whatever its share": {priority.ServeByShare,
			priority.Claimant{ID: "b", Share: 0.9, Since: hours(2)},
			priority.Claimant{ID: "a", Speculative: true, Share: 0.1, Since: hours(1), Probability: 1}},
		"the smaller share is served first, however late it came": {priority.ServeByShare,
			priority.Claimant{ID: "b", Share: 0.1, Since: hours(2)},
			priority.Claimant{ID: "a", Share: 0.2, Since: hours(1)}},
		"of equal shares, who has waited longer is served first": {priority.ServeByShare,
			priority.Claimant{ID: "b", Share: 0.1, Since: hours(1), Start: hours(9)},
			priority.Claimant{ID: "a", Share: 0.1, Since: hours(2), Start: hours(8), Probability: 1}},
		"of two that are alike, the id decides who is served": {priority.ServeByShare,
			priority.Claimant{ID: "a", Speculative: true, Share: 0.1, Probability: 0.1},
			priority.Claimant{ID: "b", Speculative: true, Share: 0.1, Probability: 0.9}},
		"the earlier start is served first, whatever its class and share": {priority.ServeByStart,
			priority.Claimant{ID: "b", Start: hours(1), Speculative: true, Share: 0.9, Since: hours(2)},
			priority.Claimant{ID: "a", Start: hours(2), Since: hours(1)}},
		"of equal starts, the id decides": {priority.ServeByStart,
			priority.Claimant{ID: "a", Start: hours(1), Since: hours(2)},
			priority.Claimant{ID: "b", Start: hours(1), Since: hours(1)}},
		"who asked first is served first, whatever its start": {priority.ServeByArrival,
			priority.Claimant{ID: "b", Since: hours(1), Start: hours(9), Share: 0.9},
			priority.Claimant{ID: "a", Since: hours(2), Start: hours(8)}},
		"of those who asked at once, the id decides": {priority.ServeByArrival,
			priority.Claimant{ID: "a", Since: hours(1), Start: hours(2)},
			priority.Claimant{ID: "b", Since: hours(1), Start: hours(1)}},
		"the larger share yields first, however likely": {priority.YieldByShare,
			priority.Claimant{ID: "b", Share: 0.2, Probability: 1},
			priority.Claimant{ID: "a", Share: 0.1}},
		"of equal shares, the less likely yields first": {priority.YieldByShare,
			priority.Claimant{ID: "b", Share: 0.1, Probability: 0.1},
			priority.Claimant{ID: "a", Share: 0.1, Probability: 0.2}},
		"of two that are alike, the id decides who yields": {priority.YieldByShare,
			priority.Claimant{ID: "a", Since: hours(2)},
			priority.Claimant{ID: "b", Since: hours(1)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Negative(t, of.compare(of.first, of.second))
			require.Positive(t, of.compare(of.second, of.first))
			require.Zero(t, of.compare(of.first, of.first))
		})
	}
}

func TestTheOrderOfAWaitlist(t *testing.T) {
	t.Parallel()
	waiting := []priority.Claimant{
		{ID: "d", Share: 0.2}, {ID: "c", Share: 0.1, Since: hours(1)}, {ID: "f", Speculative: true},
		{ID: "b", Share: 0.1}, {ID: "a", Share: 0.1, Since: hours(1)}, {ID: "e", Speculative: true},
	}
	slices.SortFunc(waiting, priority.ServeByShare)
	require.Equal(t, "bacdef", idsOf(waiting))
}

func idsOf(all []priority.Claimant) string {
	var ids strings.Builder
	for _, c := range all {
		ids.WriteString(c.ID)
	}
	return ids.String()
}

// Whoever has different ids is ordered strictly, so that a shuffled input comes out
// in the same order, also where everything else is equal.
func TestAnOrderDoesNotDependOnItsInput(t *testing.T) {
	t.Parallel()
	for name, compare := range orders {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				all := make([]priority.Claimant, rapid.IntRange(2, 12).Draw(t, "claimants"))
				for i := range all {
					all[i] = priority.Claimant{ID: string(rune('a' + i)), Speculative: rapid.Bool().Draw(t, "class"),
						Share:       float64(rapid.IntRange(0, 2).Draw(t, "share")),
						Probability: float64(rapid.IntRange(0, 1).Draw(t, "probability")),
						Start:       hours(rapid.IntRange(0, 2).Draw(t, "start")),
						Since:       hours(rapid.IntRange(0, 2).Draw(t, "since"))}
				}
				shuffled := slices.Clone(all)
				rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)).Shuffle(len(shuffled), func(i, j int) {
					shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
				})
				slices.SortFunc(all, compare)
				slices.SortFunc(shuffled, compare)
				require.Equal(t, idsOf(all), idsOf(shuffled))
				require.True(t, slices.IsSortedFunc(all, compare))
			})
		})
	}
}
