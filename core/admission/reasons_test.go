package admission_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/core/reservation"
)

func TestAReasonSaysLimitAndAskedInItsUnit(t *testing.T) {
	t.Parallel()
	start, midnight := hoursAhead(1, 2).Start, hoursAhead(16, 17).Start
	today := now.Truncate(24 * time.Hour)
	r := newRequest(reservation.Guaranteed, 1, 8, hoursAhead(1, 3))
	late := newRequest(reservation.Guaranteed, 1, 1, windowAhead(-90*time.Second, time.Hour))
	long := newRequest(reservation.Guaranteed, 1, 1, hoursAhead(1, 26))
	begun := newRequest(reservation.Guaranteed, 1, 8, windowAhead(-30*time.Second, time.Hour))
	key := func(set func(*quota.Caps)) func(v *admission.View) { return func(v *admission.View) { set(capKey(v)) } }
	for name, tc := range map[string]struct {
		req  admission.Request
		set  func(v *admission.View)
		want admission.Reason
	}{
		"past": {late, func(*admission.View) {}, admission.Reason{
			Code: admission.WindowInPast, Message: "the window starts 1m30s in the past", Unit: "seconds", Asked: -90,
		}},
		"too long": {long, func(v *admission.View) { v.Pool.Name = "p" }, admission.Reason{
			Code:    admission.WindowTooLong,
			Message: "pool p allows windows of at most 24h", Unit: "seconds", Limit: 86_400, Asked: 90_000,
		}},
		"never": {newRequest(reservation.Guaranteed, 5, 8, hoursAhead(1, 3)), func(*admission.View) {},
			admission.Reason{
				Code:    admission.NoMatchingHardware,
				Message: "pool a100 has at most 4 nodes of 8 GPUs; 5×8 never fits", Unit: "gpus", Limit: 32, Asked: 40,
			}},
		"full": {r, func(v *admission.View) { addPromise(v, "b", hoursAhead(0, 9), 6, 0, 1, 2, 3) }, admission.Reason{
			Code:    admission.CapacityExhausted,
			Message: "pool a100 has 8 GPUs free during the whole window; 1×8 has no place",
			Unit:    "gpus", Limit: 8, Asked: 8, At: start, ClearsAt: hoursAhead(9, 10).Start,
		}},
		"full, and begun": {begun, func(v *admission.View) {
			addPromise(v, "b", windowAhead(-time.Hour, -10*time.Second), 6, 0, 1, 2, 3)
		}, admission.Reason{
			Code:    admission.CapacityExhausted,
			Message: "pool a100 has 8 GPUs free during the whole window; 1×8 has no place",
			Unit:    "gpus", Limit: 8, Asked: 8, At: now.Add(-30 * time.Second), ClearsAt: now,
		}},
		"share": {r, func(v *admission.View) {
			v.Pool.OnlineShare = 250
			v.Used = map[capacity.Workload]*calendar.Profile{capacity.Online: {}}
			v.Used[capacity.Online].Add(hoursAhead(2, 4), 3)
		}, admission.Reason{
			Code:    admission.WorkloadShareExceeded,
			Message: "online work may have 8 GPUs of pool a100; with this it would have 11",
			Unit:    "gpus", Limit: 8, Asked: 11, At: start, ClearsAt: hoursAhead(4, 5).Start,
		}},
		"key's GPUs": {r, key(func(c *quota.Caps) { c.MaxGPUs = 7 }), admission.Reason{
			Code:    admission.KeyCapExceeded,
			Message: "this key may promise itself 7 GPUs at once; with this it would be 8",
			Unit:    "gpus", Limit: 7, Asked: 8, At: start,
		}},
		"key's money": {r, key(func(c *quota.Caps) { c.MaxPerDay = money.USD }), admission.Reason{
			Code:    admission.KeyCapExceeded,
			Message: "this key may commit $1.00 a day; with this it would commit $16.00",
			Unit:    "micro_usd", Limit: 1_000_000, Asked: 16_000_000, At: today,
		}},
		"key's GPU-hours": {r, key(func(c *quota.Caps) { c.GPUHoursPerDay = quota.AtMost(15) }), admission.Reason{
			Code:    admission.KeyCapExceeded,
			Message: "this key may commit 15.0 GPU-hours a day; with this it would commit 16.0 GPU-hours",
			Unit:    "gpu_seconds", Limit: 54_000, Asked: 57_600, At: today,
		}},
		"key's lead": {r, key(func(c *quota.Caps) { c.MaxLead = 59 * time.Minute }), admission.Reason{
			Code:    admission.KeyCapExceeded,
			Message: "this key may reserve at most 59m ahead", Unit: "lead_seconds",
			Limit: 3540, Asked: 3600, At: start,
		}},
		"key's window": {r, key(func(c *quota.Caps) { c.MaxWindow = time.Hour }), admission.Reason{
			Code:    admission.KeyCapExceeded,
			Message: "this key may reserve windows of at most 1h", Unit: "window_seconds",
			Limit: 3600, Asked: 7200, At: start,
		}},
		"GPUs": {r, func(v *admission.View) {
			v.Limits.GPUs = 8
			v.Committed.Hold(hoursAhead(0, 2), gpus(1))
		}, admission.Reason{
			Code:    admission.QuotaExceeded,
			Message: "the organization may hold 8 GPUs at once; with this it would hold 9",
			Unit:    "gpus", Limit: 8, Asked: 9, At: start, ClearsAt: hoursAhead(2, 3).Start,
		}},
		"cohort": {r, func(v *admission.View) {
			v.Limits.GPUs, v.Limits.Cohort = 4, "all"
		}, admission.Reason{
			Code:    admission.CohortExhausted,
			Message: "the cohort lends 4 GPUs at once; with this 8 would be in use", Unit: "gpus",
			Limit: 4, Asked: 8, At: start,
		}},
		"GPU-hours": {r, func(v *admission.View) {
			v.Limits.GPUHours = quota.AtMost(16)
			v.Committed.Spend(now, quota.Spend{GPUSeconds: 1800})
		}, admission.Reason{
			Code:    admission.GPUHoursExceeded,
			Message: "the organization may use 16.0 GPU-hours a day; with this it would use 16.5 GPU-hours",
			Unit:    "gpu_seconds", Limit: 57_600, Asked: 59_400, At: today, ClearsAt: midnight,
		}},
		"money": {r, func(v *admission.View) {
			v.Limits.MoneyPerPeriod, v.Limits.Period = quota.AtMost(int64(16*money.USD)), quota.PerMonth
			v.Committed.Spend(now, usd(money.USD))
		}, admission.Reason{
			Code:    admission.SpendingExceeded,
			Message: "the organization may spend $16.00 a month; with this it would spend $17.00", Unit: "micro_usd",
			Limit: 16_000_000, Asked: 17_000_000, At: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC),
			ClearsAt: time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC),
		}},
		"speculative": {newRequest(reservation.Speculative, 1, 8, hoursAhead(1, 3)), func(v *admission.View) {
			v.Limits.SpeculationPerDay = 16 * money.USD
			v.SpeculativeCommitments.Spend(now, usd(1))
		}, admission.Reason{
			Code:    admission.BudgetExceeded,
			Message: "speculation may cost $16.00 on that day; with this it would cost $16.00",
			Unit:    "micro_usd", Limit: 16_000_000, Asked: 16_000_001, At: today, ClearsAt: midnight,
		}},
	} {
		v := emptyView()
		tc.set(&v)
		require.Equal(t, []admission.Reason{tc.want}, admission.Decide(tc.req, v).Reasons, name)
	}
}

// A lease that is prolonged adds what the whole of it costs more than before, on
// the day on which it began, and is as long as all of it.
func TestWhatIsProlongedAddsTheDifference(t *testing.T) {
	t.Parallel()
	r := newRequest(reservation.Guaranteed, 1, 8, hoursAhead(1, 3))
	r.Since, r.Prolongs = hoursAhead(-10, 0).Start, true
	v := emptyView()
	caps := capKey(&v)
	caps.MaxPerDay, caps.GPUHoursPerDay, caps.MaxWindow = 100*money.USD, quota.AtMost(100), 13*time.Hour
	v.Key.Spent.Spend(r.Since, quota.Spend{Cost: 84 * money.USD, GPUSeconds: 84 * 3600})
	require.Empty(t, admission.Decide(r, v).Reasons, "two hours of 8 GPUs are $16")
	v.Key.Spent.Spend(r.Since, quota.Spend{Cost: 1, GPUSeconds: 1})
	caps.MaxWindow--
	var asked []int64
	var counts []bool
	for _, reason := range admission.Decide(r, v).Reasons {
		asked = append(asked, reason.Asked)
		counts = append(counts, strings.HasSuffix(reason.Message,
			" (a lease counts in the day in which it began: 2026-03-01)"))
	}
	require.Equal(t, []int64{100_000_001, 360_001, 13 * 3600}, asked)
	require.Equal(t, []bool{true, true, false}, counts, "the length of a window is of no day")

	r.Prolongs = false
	v.Key.Spent = &quota.Commitments{}
	caps.MaxPerDay, caps.GPUHoursPerDay, caps.MaxWindow = 104*money.USD, quota.AtMost(104), 13*time.Hour
	require.Empty(t, admission.Decide(r, v).Reasons, "what counts anew counts as a whole: 13 hours of 8 GPUs")
	caps.MaxPerDay--
	require.Equal(t, []admission.Code{admission.KeyCapExceeded}, blockerCodes(admission.Decide(r, v)))
}

func TestARangeIsNarrowedToTheLongestLease(t *testing.T) {
	t.Parallel()
	span := func(least, most int) calendar.TimeRange {
		return calendar.TimeRange{
			StartNotEarlierThan: hoursAhead(1, 2).Start, EndNotLaterThan: hoursAhead(0, 48).End,
			MinDuration: hoursAhead(0, least).Length(), MaxDuration: hoursAhead(0, most).Length(),
		}
	}
	for name, tc := range map[string]struct {
		span calendar.TimeRange
		want calendar.Interval
		code []admission.Code
	}{
		"no length is given":          {span(2, 0), hoursAhead(1, 25), nil},
		"more than the lease":         {span(2, 30), hoursAhead(1, 25), nil},
		"exactly the lease":           {span(24, 24), hoursAhead(1, 25), nil},
		"less than the lease":         {span(2, 5), hoursAhead(1, 6), nil},
		"at least the lease":          {span(24, 0), hoursAhead(1, 25), nil},
		"never as short as the lease": {span(25, 30), hoursAhead(1, 26), []admission.Code{admission.WindowTooLong}},
		"from now, if it begins earlier": {
			calendar.TimeRange{
				StartNotEarlierThan: hoursAhead(-5, 0).Start, EndNotLaterThan: hoursAhead(0, 3).End,
				MinDuration: time.Hour,
			},
			hoursAhead(0, 3), nil,
		},
		"an end alone, as short as it is": {
			calendar.TimeRange{StartNotEarlierThan: hoursAhead(1, 2).Start, MinDuration: 2 * time.Hour},
			hoursAhead(1, 3), nil,
		},
	} {
		r := admission.Request{Class: reservation.Guaranteed, Shape: capacity.Shape{Nodes: 1, PerNode: 8},
			Range: tc.span}
		d := admission.Decide(r, emptyView())
		require.Equal(t, tc.code, blockerCodes(d), name)
		require.Equal(t, tc.want, d.Window, name)
	}
}

// The one GPU that equal remainders leave is online's.
func TestSharesAreRoundedByLargestRemainder(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ gpus, permille, online int }{
		{10, 250, 3}, {10, 249, 2}, {10, 251, 3}, {10, 1000, 10}, {10, 2000, 10},
		{3, 500, 2}, {4, 500, 2}, {1, 499, 0}, {1, 500, 1}, {10, 1, 0},
	} {
		online, batch := admission.Shares(capacity.Pool{PerNode: 1, MaxNodes: tc.gpus, OnlineShare: tc.permille})
		require.Equal(
			t,
			[]int{tc.online, tc.gpus - tc.online},
			[]int{online, batch},
			"%d GPUs, %d‰",
			tc.gpus,
			tc.permille,
		)
	}
	online, batch := admission.Shares(capacity.Pool{PerNode: 8, MaxNodes: 4, OnlineShare: 500})
	require.Equal(t, []int{16, 16}, []int{online, batch})
}
