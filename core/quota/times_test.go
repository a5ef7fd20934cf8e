package quota_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/quota"
)

// lookAhead is how many changes or periods a search for a later start looks at.
const lookAhead = 64

func TestABudgetHoldsExactly(t *testing.T) {
	t.Parallel()
	h := quota.Holdings{
		Limits: quota.Limits{SpeculationPerDay: 5, MoneyPerPeriod: quota.AtMost(5), GPUHours: quota.AtMost(1)},
	}
	a := quota.Ask{Window: hours(1, 2), Spend: quota.Spend{Cost: 5, GPUSeconds: 3600}, Speculative: true}
	require.Empty(t, quota.Measure(h, a).Violations())
	a.Spend.Cost++
	require.Equal(t, []quota.Rule{quota.RuleMoney, quota.RuleSpeculation}, rulesOf(quota.Measure(h, a).Violations()))
}

// Limits may be lowered below what is held; who asks for nothing of a resource is
// not stopped by that.
func TestWhatIsNotAskedForIsNoViolation(t *testing.T) {
	t.Parallel()
	var c quota.Commitments
	c.Hold(hours(0, 9), gpus(4))
	h := quota.Holdings{Limits: quota.Limits{GPUs: 3}, Committed: &c}
	require.Empty(t, quota.Measure(h, quota.Ask{Window: hours(1, 2), Demand: quota.Vector{quota.CPUs: 1}}).Violations())
	require.Equal(
		t,
		[]quota.Rule{quota.RuleNominal},
		rulesOf(quota.Measure(h, quota.Ask{Window: hours(1, 2), Demand: gpus(1)}).Violations()),
	)
}

func TestALimitIsFirstExceededBeyondIt(t *testing.T) {
	t.Parallel()
	var c quota.Commitments
	c.Hold(hours(2, 9), gpus(3))
	c.Hold(hours(4, 6), gpus(1))
	h := quota.Holdings{Limits: quota.Limits{GPUs: 4}, Committed: &c}
	found := quota.Measure(h, quota.Ask{Window: hours(1, 8), Demand: gpus(1)}).Violations()
	require.Equal(t, []quota.Violation{
		{
			Rule:  quota.RuleNominal,
			Limit: 4,
			Asked: 5,
			Times: quota.Times{At: hours(4, 5).Start, ClearsAt: hours(6, 7).Start},
		},
	}, found, "at hour 2 it is exactly the limit")
}

// A day on which the budget is spent is passed over, for as many days as are
// looked at.
func TestABudgetClearsOnTheFirstDayWithRoom(t *testing.T) {
	t.Parallel()
	for full, found := range map[int]bool{1: true, 3: true, lookAhead: true, lookAhead + 1: false} {
		var c quota.Commitments
		for day := range full {
			c.Spend(monday.AddDate(0, 0, day), quota.Spend{Cost: 2 * money.USD})
		}
		h := quota.Holdings{Limits: quota.Limits{MoneyPerPeriod: quota.AtMost(int64(2 * money.USD))}, Committed: &c}
		violations := quota.Measure(h, quota.Ask{Window: hours(5, 6), Spend: quota.Spend{Cost: 2 * money.USD}}).
			Violations()
		want := quota.Times{At: monday}
		if found {
			want.ClearsAt = monday.AddDate(0, 0, full)
		}
		require.Len(t, violations, 1)
		require.Equal(t, want, violations[0].Times, "%d days are full", full)
	}
}

// A cohort's use changes every hour until there is room, for as many changes as
// are looked at.
func TestACohortClearsAtTheFirstChangeWithRoom(t *testing.T) {
	t.Parallel()
	for changes, found := range map[int]bool{1: true, lookAhead: true, lookAhead + 1: false} {
		me, borrower := newMember(4, quota.Unlimited, 0), newMember(4, quota.Unlimited, quota.Unlimited)
		for hour := range changes {
			borrower.Committed.Hold(hours(hour, hour+1), gpus(int64(8-hour%2)))
		}
		borrower.Committed.Hold(hours(changes, changes+99), gpus(6))
		violations := quota.Measure(newHoldings(me, borrower), quota.Ask{Window: hours(0, 1), Demand: gpus(2)}).
			Violations()
		want := quota.Times{At: monday}
		if found {
			want.ClearsAt = monday.Add(time.Duration(changes) * time.Hour)
		}
		require.Len(t, violations, 1)
		require.Equal(t, want, violations[0].Times, "after %d changes it is exactly what there is", changes)
	}
}
