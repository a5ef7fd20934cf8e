package quota_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/quota"
)

// newMember has a nominal quota of GPUs, and what it may lend and borrow.
func newMember(nominal int, lends, borrows int64) quota.Member {
	return quota.Member{Committed: &quota.Commitments{}, Limits: quota.Limits{
		GPUs: nominal, Cohort: "all",
		Lending:   quota.Bounds{quota.GPUs: quota.AtMost(lends)},
		Borrowing: quota.Bounds{quota.GPUs: quota.AtMost(borrows)},
	}}
}

func newHoldings(m quota.Member, others ...quota.Member) quota.Holdings {
	return quota.Holdings{Limits: m.Limits, Committed: m.Committed, Cohort: others}
}

func TestACohortLends(t *testing.T) {
	t.Parallel()
	const all = quota.Unlimited
	ask := func(n int64) quota.Ask { return quota.Ask{Window: hours(1, 3), Demand: gpus(n)} }
	for name, tc := range map[string]struct {
		me     quota.Member
		others []quota.Member
		theirs int64 // what each other holds
		n      int64
		want   []quota.Rule
	}{
		"all that is idle": {newMember(4, all, all), []quota.Member{newMember(4, all, 0), newMember(4, all, 0)}, 0,
			12, nil},
		"no more than there is": {newMember(4, all, all), []quota.Member{newMember(4, all, 0), newMember(4, all, 0)}, 0,
			13, []quota.Rule{quota.RuleCohort}},
		"up to the borrowing limit": {newMember(4, all, 2), []quota.Member{newMember(8, all, 0)}, 0, 6, nil},
		"beyond the borrowing limit": {newMember(4, all, 2), []quota.Member{newMember(8, all, 0)}, 0, 7,
			[]quota.Rule{quota.RuleNominal}},
		"only what is lent": {newMember(4, all, all), []quota.Member{newMember(8, 3, 0)}, 0, 7, nil},
		"not what is kept": {newMember(4, all, all), []quota.Member{newMember(8, 3, 0)}, 0, 8,
			[]quota.Rule{quota.RuleCohort}},
		"what a lender keeps is no loan": {newMember(4, all, all), []quota.Member{newMember(8, 3, 0)}, 5, 7, nil},
		"what a lender uses is not lent": {newMember(4, all, all), []quota.Member{newMember(8, 3, 0)}, 6, 7,
			[]quota.Rule{quota.RuleCohort}},
		"the own is there, if kept": {newMember(4, 0, all), []quota.Member{newMember(4, all, all)}, 8, 4, nil},
		"the own is lent, if lent": {newMember(4, all, all), []quota.Member{newMember(4, all, all)}, 8, 1,
			[]quota.Rule{quota.RuleCohort}},
	} {
		for _, m := range tc.others {
			m.Committed.Hold(hours(2, 9), gpus(tc.theirs))
		}
		require.Equal(t, tc.want, rulesOf(quota.Measure(newHoldings(tc.me, tc.others...), ask(tc.n)).Violations()),
			name)
	}
	alone := newMember(4, all, all)
	alone.Limits.Cohort = ""
	require.Equal(t, []quota.Rule{quota.RuleNominal}, rulesOf(quota.Measure(newHoldings(alone), ask(5)).Violations()),
		"no cohort, no loan")
}

func TestACohortClearsWhenTheBorrowerIsDone(t *testing.T) {
	t.Parallel()
	me, borrower := newMember(4, quota.Unlimited, 0), newMember(4, quota.Unlimited, quota.Unlimited)
	borrower.Committed.Hold(hours(2, 9), gpus(7))
	found := quota.Measure(newHoldings(me, borrower), quota.Ask{Window: hours(1, 3), Demand: gpus(2)}).Violations()
	require.Equal(t, []quota.Violation{{
		Rule: quota.RuleCohort, Limit: 8, Asked: 9, Times: quota.Times{At: hours(2, 3).Start,
			ClearsAt: hours(9, 10).Start},
	}}, found)
}

// naiveShared says the rule instant by instant, in the words of Shared.
func naiveShared(me quota.Member, others []quota.Member, iv calendar.Interval, n int64) (over, cohort bool) {
	part := func(m quota.Member) (kept, lent int64) {
		nominal := int64(m.Limits.GPUs)
		lent = nominal
		if most, ok := m.Limits.Lending[quota.GPUs].Bound(); ok {
			lent = min(lent, most)
		}
		return nominal - lent, lent
	}
	for t := iv.Start; t.Before(iv.End); t = t.Add(hours(0, 1).Length()) {
		use := me.Committed.At(t)[quota.GPUs] + n
		if most, ok := me.Limits.Borrowing[quota.GPUs].Bound(); ok && use > int64(me.Limits.GPUs)+most {
			over = true
		}
		kept, lendable := part(me)
		shared := max(0, use-kept)
		adds := shared > 0
		for _, m := range others {
			k, l := part(m)
			lendable += l
			shared += max(0, m.Committed.At(t)[quota.GPUs]-k)
		}
		cohort = cohort || adds && shared > lendable
	}
	return over, cohort
}

func TestCohortsFollowTheRule(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		draw := func() quota.Member {
			return newMember(rapid.IntRange(0, 8).Draw(t, "nominal"), rapid.Int64Range(-1, 8).Draw(t, "lends"),
				rapid.Int64Range(-1, 8).Draw(t, "borrows"))
		}
		all := []quota.Member{draw(), draw(), draw()}
		for range rapid.IntRange(1, 30).Draw(t, "asks") {
			i := rapid.IntRange(0, 2).Draw(t, "who")
			from := rapid.IntRange(0, 20).Draw(t, "from")
			iv := hours(from, from+rapid.IntRange(1, 6).Draw(t, "length"))
			n := rapid.Int64Range(1, 8).Draw(t, "n")
			others := append(append([]quota.Member{}, all[:i]...), all[i+1:]...)
			found := quota.Measure(newHoldings(all[i], others...), quota.Ask{Window: iv, Demand: gpus(n)}).Violations()
			over, cohort := naiveShared(all[i], others, iv, n)
			var want []quota.Rule
			if over {
				want = append(want, quota.RuleNominal)
			}
			if cohort {
				want = append(want, quota.RuleCohort)
			}
			require.Equal(t, want, rulesOf(found))
			for _, v := range found {
				if !v.ClearsAt.IsZero() {
					later := quota.Ask{Window: calendar.Interval{Start: v.ClearsAt, End: v.ClearsAt.Add(iv.Length())},
						Demand: gpus(n)}
					require.NotContains(t, rulesOf(quota.Measure(newHoldings(all[i], others...), later).Violations()),
						v.Rule)
				}
			}
			if len(found) == 0 {
				all[i].Committed.Hold(iv, gpus(n))
			}
		}
	})
}

// Others may have borrowed more than there is since, when limits were lowered:
// that stops only who would add to it, at the instants at which they do.
func TestOnlyWhatAddsToTheSharedIsStopped(t *testing.T) {
	t.Parallel()
	cpus := func(n int64) quota.Vector { return quota.Vector{quota.CPUs: n} }
	me, other := newMember(4, 0, quota.Unlimited), newMember(4, quota.Unlimited, quota.Unlimited)
	me.Committed.Hold(hours(0, 3), gpus(6))
	other.Committed.Hold(hours(0, 3), gpus(9))
	require.Empty(t, quota.Measure(newHoldings(me, other),
		quota.Ask{Window: hours(1, 2), Demand: cpus(1)}).Violations(), "no GPU is asked for")

	me, other = newMember(4, 0, quota.Unlimited), newMember(4, quota.Unlimited, quota.Unlimited)
	other.Committed.Hold(hours(0, 2), gpus(9))
	me.Committed.Hold(hours(2, 4), gpus(3))
	require.Empty(t, quota.Measure(newHoldings(me, other), quota.Ask{Window: hours(0, 4),
		Demand: gpus(2)}).Violations(),
		"while the other holds too much it takes of its own")

	for _, m := range []*quota.Member{&me, &other} {
		m.Limits.CPUs, m.Limits.Lending[quota.CPUs] = quota.AtMost(4), quota.AtMost(2)
	}
	other.Committed.Hold(hours(0, 4), cpus(3))
	standing := quota.Measure(newHoldings(me, other),
		quota.Ask{Window: hours(2, 4), Demand: quota.Vector{quota.GPUs: 2, quota.CPUs: 2}})
	require.Equal(t, gpus(1), standing.Shared.Use, "one GPU beyond what it keeps, and no CPU")
}

func TestACohortIsFirstExceededWhereItIsWorst(t *testing.T) {
	t.Parallel()
	me, other := newMember(4, quota.Unlimited, 0), newMember(4, quota.Unlimited, quota.Unlimited)
	for hour, held := range []int64{7, 8, 6, 8, 7} {
		other.Committed.Hold(hours(hour, hour+1), gpus(held))
	}
	found := quota.Measure(newHoldings(me, other), quota.Ask{Window: hours(0, 5), Demand: gpus(2)}).Violations()
	require.Len(t, found, 1)
	require.Equal(t, int64(10), found[0].Asked)
	require.Equal(t, hours(1, 2).Start, found[0].At, "the first of two that are as bad")
}
