package cost_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/activity"
	"github.com/forewarm/forewarm/core/cost"
	"github.com/forewarm/forewarm/core/money"
)

func stretch(gpu string, from, to int, idle bool) activity.Stretch {
	return activity.Stretch{GPU: gpu, Interval: span(from, to), Idle: idle}
}

func tenantsOf(charges []cost.Charge) map[string]cost.Charge {
	tenants := map[string]cost.Charge{}
	for _, c := range charges {
		if c.Payer == cost.Tenant {
			tenants[c.OrganizationID] = c
		}
	}
	return tenants
}

// A GPU-minute costs 5 cents.
func TestWhatWasHeldAndIdleByHand(t *testing.T) {
	t.Parallel()
	m := twoGPUNode()
	m.Holds = []cost.Hold{
		{GPU: "a", OrganizationID: "org_1", Held: span(30, 50)},
		{GPU: "a", OrganizationID: "org_2", Held: span(50, 70)},
		{GPU: "b", OrganizationID: "org_1", Held: span(30, 40)},
	}
	m.Activity = []activity.Stretch{
		stretch("a", 10, 35, true), stretch("a", 35, 45, false), stretch("a", 48, 60, true),
		stretch("another", 0, 100, true),
	}
	tenants := tenantsOf(cost.Divide(m, span(0, 100)))
	part := func(minutes int) cost.Part {
		return cost.Part{GPUTime: time.Duration(minutes) * time.Minute, Amount: money.MicroUSD(minutes) * money.USD / 20}
	}
	one, two := tenants["org_1"], tenants["org_2"]
	require.Equal(t, []cost.Part{part(7), part(10), part(13)}, []cost.Part{one.Idle, one.Used(), one.Unobserved},
		"a: 30-35 and 48-50 idle, 35-45 used; of b nobody knows")
	require.Equal(t, []cost.Part{part(10), {}, part(10)}, []cost.Part{two.Idle, two.Used(), two.Unobserved})
	require.Equal(t, part(6), tenantsOf(cost.Divide(m, span(34, 53)))["org_1"].Idle.Add(
		tenantsOf(cost.Divide(m, span(34, 53)))["org_2"].Idle), "34-35, 48-50 and 50-53")
}

// What a GPU does is what each of its shares does.
func TestSharesDoWhatTheirGPUDoes(t *testing.T) {
	t.Parallel()
	m := twoGPUNode()
	m.Holds = []cost.Hold{
		{GPU: "a::0", OrganizationID: "org_1", Held: span(30, 50)},
		{GPU: "a::1", OrganizationID: "org_2", Held: span(30, 50)},
	}
	m.Activity = []activity.Stretch{stretch("a", 30, 40, true), stretch("a", 40, 50, false)}
	for _, c := range tenantsOf(cost.Divide(m, span(0, 100))) {
		require.Equal(t, 10*time.Minute, c.Idle.GPUTime)
		require.Equal(t, 10*time.Minute, c.Used().GPUTime)
	}
}

func TestNobodyLookedAtWhatNobodyHeld(t *testing.T) {
	t.Parallel()
	m := twoGPUNode()
	m.Activity = []activity.Stretch{stretch("a", 0, 100, true)}
	for _, c := range cost.Divide(m, span(0, 100)) {
		require.Equal(t, []cost.Part{{}, {}, {}}, []cost.Part{c.Idle, c.Used(), c.Unobserved})
	}
}

// Whatever was seen: what was used, idle and not observed is what was held, to the
// micro-dollar, and looking changes nobody's bill.
func TestThePartsOfWhatWasHeldAddUp(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := drawMachine(t)
		for _, gpu := range []string{"0", "1"} {
			at := 0
			for range rapid.IntRange(0, 4).Draw(t, "stretches") {
				from := at + rapid.IntRange(0, 60).Draw(t, "gap")
				at = from + rapid.IntRange(1, 90).Draw(t, "length")
				m.Activity = append(m.Activity, stretch(gpu, from, at, rapid.Bool().Draw(t, "idle")))
			}
		}
		unseen := m
		unseen.Activity = nil
		period := span(rapid.IntRange(-5, 200).Draw(t, "from"), 301)
		before, after := cost.Divide(unseen, period), cost.Divide(m, period)
		require.Equal(t, amountsOf(before), amountsOf(after))
		for _, c := range tenantsOf(before) {
			require.Equal(t, cost.Part{GPUTime: c.GPUTime, Amount: c.Amount}, c.Unobserved)
		}
		for _, c := range tenantsOf(after) {
			for _, part := range []cost.Part{c.Idle, c.Unobserved, c.Used()} {
				require.GreaterOrEqual(t, part.GPUTime, time.Duration(0))
				require.GreaterOrEqual(t, int64(part.Amount), int64(0))
				require.False(t, part.GPUTime == 0 && part.Amount > 0, "no time costs nothing: %v", c)
			}
			require.Equal(t, cost.Part{GPUTime: c.GPUTime, Amount: c.Amount}, c.Idle.Add(c.Unobserved).Add(c.Used()))
		}
	})
}
