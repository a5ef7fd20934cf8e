package admission_test

import (
	"fmt"
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

// An accepted request is decided thousands of times a second under a lock: it
// leaves nothing for the garbage collector, whatever limits there are.
func TestAcceptedDecisionsAllocateNothing(t *testing.T) {
	v := emptyView()
	capKey(&v)
	v.User = v.Key
	v.Limits.Cohort, v.Limits.Bookings, v.Limits.GPUHours = "all", quota.AtMost(1000), quota.AtMost(10_000)
	v.Limits.Period, v.Limits.MoneyPerPeriod = quota.PerMonth, quota.AtMost(int64(100_000*money.USD))
	v.Cohort = []quota.Member{{Limits: v.Limits, Committed: &quota.Commitments{}}}
	v.Pool.MaxNodes, v.Pool.OnlineShare = 1250, 500
	v.Slots = calendar.NewSlots(1250, 8)
	v.Used = map[capacity.Workload]*calendar.Profile{capacity.Online: {}}
	for i := range 500 {
		b := calendar.Booking{ID: fmt.Sprint("b", i), Interval: hoursAhead(i%40, i%40+7), Slots: []int{i, i + 500},
			GPUs: 1 + i%8}
		v.Slots.Force(b)
		for _, c := range []*quota.Commitments{v.Committed, v.Cohort[0].Committed, v.Key.Spent} {
			c.Add(b.Interval, gpus(i%2), quota.Spend{Cost: money.USD, GPUSeconds: 60})
		}
		v.Used[capacity.Online].Add(b.Interval, 1)
	}
	v.Buf = make([]int, 0, 8)
	for name, class := range map[string]reservation.Class{"a promise": reservation.Guaranteed,
		"speculative": reservation.Speculative} {
		r := newRequest(class, 2, 8, calendar.Interval{Start: now.Add(90 * time.Minute), End: now.Add(7 * time.Hour)})
		d := admission.Decide(r, v)
		require.Empty(t, d.Reasons, name)
		require.Zero(t, testing.AllocsPerRun(100, func() { d = admission.Decide(r, v) }), name)
		require.Len(t, d.Slots, 2)
	}
}
