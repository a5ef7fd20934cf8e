package cost_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/cost"
	"github.com/forewarm/forewarm/core/money"
)

var dawn = time.Date(2026, 3, 2, 6, 0, 0, 0, time.UTC)

func at(minutes int) time.Time { return dawn.Add(time.Duration(minutes) * time.Minute) }

func span(from, to int) calendar.Interval { return calendar.Interval{Start: at(from), End: at(to)} }

// twoGPUNode is a machine of two GPUs for 6 $ an hour: a GPU-minute costs 5 cents.
func twoGPUNode() cost.Instance {
	return cost.Instance{
		Price: capacity.Offering{Price: 6 * money.USD, MinBilling: time.Minute}, GPUs: 2,
		Billed: span(0, 100), Ready: at(10), Retired: at(90),
	}
}

func amountsOf(charges []cost.Charge) map[string]string {
	out := map[string]string{}
	for _, c := range charges {
		out[string(c.Payer)+c.OrganizationID+string(c.Cause)] = fmt.Sprint(c.GPUTime, " ", c.Amount.Decimal())
	}
	return out
}

// Every cause of a life that can be followed by hand.
func TestALifeByHand(t *testing.T) {
	t.Parallel()
	m := twoGPUNode()
	m.Holds = []cost.Hold{
		{GPU: "a", OrganizationID: "org_1", Held: span(30, 50)},
		{GPU: "a", OrganizationID: "org_2", Held: span(60, 70)},
		{GPU: "b", OrganizationID: "org_1", Held: span(30, 40)},
	}
	m.Missed = []calendar.Interval{span(75, 80)}
	require.Equal(t, map[string]string{
		"warm_poolboot":         "20m0s 1.000000",
		"warm_poolearly_warm":   "50m0s 2.500000",  // a: 10-30 and 50-60, b: 10-30
		"warm_poollate_release": "1h0m0s 3.000000", // a: 70-75 and 80-90, b: 40-75 and 80-90
		"warm_poolno_show":      "10m0s 0.500000",
		"warm_poolremoval":      "20m0s 1.000000",
		"tenantorg_1":           "30m0s 1.500000",
		"tenantorg_2":           "10m0s 0.500000",
	}, amountsOf(cost.Divide(m, span(0, 100))))
}

func TestWhatNobodyEverHeld(t *testing.T) {
	t.Parallel()
	never := twoGPUNode()
	require.Equal(t, map[string]string{
		"warm_poolboot": "20m0s 1.000000", "warm_poolunused": "2h40m0s 8.000000", "warm_poolremoval": "20m0s 1.000000",
	}, amountsOf(cost.Divide(never, span(-10, 200))))
	failed := twoGPUNode()
	failed.Ready, failed.Retired = time.Time{}, at(50)
	require.Equal(t, map[string]string{"warm_poolfailed_boot": "3h20m0s 10.000000"},
		amountsOf(cost.Divide(failed, span(0, 200))))
	failed.Booting = true
	require.Equal(t, map[string]string{"warm_poolboot": "3h20m0s 10.000000"},
		amountsOf(cost.Divide(failed, span(0, 200))), "nothing has failed yet")
	failed.Orphan = true
	require.Equal(t, map[string]string{"orphan": "3h20m0s 10.000000"}, amountsOf(cost.Divide(failed, span(0, 200))))
	atOnce := failed
	atOnce.Orphan, atOnce.Booting, atOnce.Billed.End = false, false, atOnce.Billed.Start
	require.Equal(t, map[string]string{"warm_poolmin_billing": "0s 0.100000"},
		amountsOf(cost.Divide(atOnce, span(0, 200))), "the minimum is owed")
	require.Empty(t, cost.Divide(atOnce, span(1, 200)))
}

// What the shortest billed time adds is nobody's use of a GPU: who held one pays
// for the time, at the price, however short the machine's life was.
func TestTheMinimumIsAPartOfItsOwn(t *testing.T) {
	t.Parallel()
	m := twoGPUNode()
	m.Price.MinBilling, m.Holds = 2*time.Hour, []cost.Hold{{GPU: "a", OrganizationID: "org_1", Held: span(30, 50)}}
	byHand := map[string]string{
		"warm_poolboot": "20m0s 1.000000", "warm_poolearly_warm": "20m0s 1.000000",
		"warm_poollate_release": "40m0s 2.000000",
		"warm_poolunused":       "1h20m0s 4.000000", "warm_poolremoval": "20m0s 1.000000",
		"tenantorg_1":          "20m0s 1.000000",
		"warm_poolmin_billing": "0s 2.000000", // 100 of 120 minutes were lived
	}
	require.Equal(t, byHand, amountsOf(cost.Divide(m, span(0, 200))))
	require.Equal(t, map[string]string{"tenantorg_1": "20m0s 1.000000", "warm_poolunused": "20m0s 1.000000"},
		amountsOf(cost.Divide(m, span(30, 50))), "it is owed at birth")
	m.Orphan = true
	require.Equal(t, map[string]string{"orphan": "3h20m0s 12.000000"}, amountsOf(cost.Divide(m, span(0, 200))))
}

// Whatever the life: all of it is charged, once, and the parts of adjoining
// periods add up to the bill.
func TestEveryMomentIsChargedOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := drawMachine(t)
		end := rapid.IntRange(0, 300).Draw(t, "now")
		if at(end).Before(m.Billed.End) {
			m.Billed.End = at(end)
		}
		if m.Billed.End.Before(m.Billed.Start) {
			m.Billed.End = m.Billed.Start
		}
		cuts := []int{-5, rapid.IntRange(-5, 300).Draw(t, "cut"), 301}
		var paid money.MicroUSD
		var charged time.Duration
		for i := range 2 {
			for _, c := range cost.Divide(m, span(cuts[i], cuts[i+1])) {
				require.GreaterOrEqual(t, int64(c.Amount), int64(0))
				paid += c.Amount
				charged += c.GPUTime
			}
		}
		require.Equal(t, m.Price.Cost(m.Billed.Length()), paid)
		require.Equal(t, time.Duration(m.GPUs)*m.Billed.Length(), charged)
	})
}

func drawMachine(t *rapid.T) cost.Instance {
	minute := func(name string) int { return rapid.IntRange(0, 300).Draw(t, name) }
	born := minute("born")
	m := cost.Instance{
		Price: capacity.Offering{
			Price:      money.MicroUSD(rapid.Int64Range(0, 40_000_001).Draw(t, "price")),
			MinBilling: time.Duration(minute("minimum")) * time.Second,
		},
		GPUs: rapid.IntRange(1, 3).Draw(t, "gpus"), Billed: span(born, born+minute("life")),
		Orphan: rapid.Bool().Draw(t, "orphan"),
	}
	if rapid.Bool().Draw(t, "became ready") {
		m.Ready = at(born + minute("boot"))
		if rapid.Bool().Draw(t, "retired") {
			m.Retired = m.Ready.Add(time.Duration(minute("served")) * time.Minute)
		}
	}
	for g := range m.GPUs {
		from := minute("first hold")
		for i := range rapid.IntRange(0, 3).Draw(t, "holds") {
			to := from + minute("held")
			m.Holds = append(m.Holds, cost.Hold{GPU: fmt.Sprint(g), OrganizationID: fmt.Sprint(i),
				Held: span(from, to)})
			from = to + minute("between")
		}
	}
	for range rapid.IntRange(0, 2).Draw(t, "missed") {
		from := minute("missed from")
		m.Missed = append(m.Missed, span(from, from+minute("missed for")))
	}
	for range rapid.IntRange(0, 2).Draw(t, "quarantined") {
		from := minute("quarantined from")
		m.Quarantined = append(m.Quarantined, span(from, from+minute("quarantined for")))
	}
	return m
}
