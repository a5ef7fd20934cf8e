package admission_test

import (
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

var now = time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)

// hoursAhead is a window that begins from hours and ends to hours after now.
func hoursAhead(from, to int) calendar.Interval {
	return calendar.Interval{Start: now.Add(time.Duration(from) * time.Hour),
		End: now.Add(time.Duration(to) * time.Hour)}
}

// testPool has 4 nodes of 8 GPUs at $8 an hour: a dollar per GPU and hour.
func testPool() capacity.Pool {
	return capacity.Pool{Name: "a100", PerNode: 8, MaxNodes: 4, Price: 8 * money.USD,
		Timers: capacity.Timers{MaxLease: 24 * time.Hour}}
}

// emptyView is an empty pool and an organization that may do anything.
func emptyView() admission.View {
	return admission.View{
		Now: now, PoolView: admission.PoolView{Pool: testPool(), Slots: calendar.NewSlots(4, 8)},
		Limits:    quota.Limits{GPUs: 1000, SpeculationPerDay: 10_000 * money.USD},
		Committed: &quota.Commitments{}, SpeculativeCommitments: &quota.Commitments{},
	}
}

// capKey gives the view a key that may do anything, and returns its caps.
func capKey(v *admission.View) *quota.Caps {
	caps := &quota.Caps{MaxGPUs: 1000, MaxPerDay: 10_000 * money.USD, MaxLead: 14 * 24 * time.Hour,
		MaxWindow: 24 * time.Hour}
	v.Key = admission.Capped{Caps: caps, Spent: &quota.Commitments{}}
	return caps
}

func gpus(n int) quota.Vector { return quota.Vector{quota.GPUs: int64(n)} }

func usd(m money.MicroUSD) quota.Spend { return quota.Spend{Cost: m} }

func newRequest(class reservation.Class, nodes, perNode int, w calendar.Interval) admission.Request {
	return admission.Request{Class: class, Shape: capacity.Shape{Nodes: nodes, PerNode: perNode}, Window: w}
}

func addSpeculative(v *admission.View, id string, w calendar.Interval, gpus int, slots ...int) {
	b := calendar.Booking{ID: id, Interval: w, Slots: slots, GPUs: gpus}
	v.Slots.Force(b)
	v.Speculative = append(v.Speculative, admission.Speculative{Booking: b,
		Probability: float64(len(v.Speculative)) / 100})
}

func addPromise(v *admission.View, id string, w calendar.Interval, gpus int, slots ...int) {
	v.Slots.Force(calendar.Booking{ID: id, Interval: w, Slots: slots, GPUs: gpus})
}

func blockerCodes(d admission.Decision) []admission.Code {
	var found []admission.Code
	for _, r := range d.Reasons {
		found = append(found, r.Code)
	}
	return found
}

// What prolongs a booking has as many GPUs on each of its slots as before, or no place.
func TestAProlongedBookingStaysWhereItIs(t *testing.T) {
	t.Parallel()
	v, w := emptyView(), calendar.Interval{Start: now.Add(time.Hour), End: now.Add(2 * time.Hour)}
	r := newRequest(reservation.Guaranteed, 2, 8, w)
	r.Shape.Short, r.At, r.Since, r.Prolongs = 6, []int{3, 1}, now, true // eight GPUs on slot 3, two on slot 1
	addPromise(&v, "other", w, 6, 1)
	d := admission.Decide(r, v)
	require.True(t, d.Accepted())
	require.Equal(t, []int{3, 1}, d.Slots)

	addPromise(&v, "other", w, 6, 3)
	v.Movable = []string{"other"}
	require.Equal(t, []admission.Code{admission.CapacityExhausted}, blockerCodes(admission.Decide(r, v)),
		"there would be room the other way round")
}

func TestAcceptedHasAPlaceAndAPrice(t *testing.T) {
	t.Parallel()
	v := emptyView()
	addPromise(&v, "other", hoursAhead(0, 4), 4, 2)
	d := admission.Decide(newRequest(reservation.Guaranteed, 1, 4, hoursAhead(1, 3)), v)
	require.True(t, d.Accepted())
	require.Equal(t, []int{2}, d.Slots, "best fit")
	require.Equal(t, 8*money.USD, d.Cost, "4 GPUs, 2 hours, a dollar each")
	require.Empty(t, d.Offers)
	require.Empty(t, d.Displaced)
	require.False(t, d.OnlyCapacity())
}

func TestEachLimitHoldsExactly(t *testing.T) {
	t.Parallel()
	two := newRequest(reservation.Speculative, 1, 4, hoursAhead(1, 3)) // 4 GPUs, $8
	for name, tc := range map[string]struct {
		req  admission.Request
		set  func(v *admission.View, over int64) // over is 0 at the limit, 1 beyond it
		want admission.Code
	}{
		"quota": {newRequest(reservation.Guaranteed, 1, 4, hoursAhead(1, 3)), func(v *admission.View, over int64) {
			v.Limits.GPUs = 10
			v.Committed.Hold(hoursAhead(0, 2), gpus(6+int(over)))
		}, admission.QuotaExceeded},
		"speculation budget": {two, func(v *admission.View, over int64) {
			v.Limits.SpeculationPerDay = 20 * money.USD
			v.SpeculativeCommitments.Add(hoursAhead(10, 11), gpus(1), usd(12*money.USD+money.MicroUSD(over)))
		}, admission.BudgetExceeded},
		"key GPUs": {two, func(v *admission.View, over int64) {
			capKey(v).MaxGPUs = 10
			v.Key.Spent.Hold(hoursAhead(2, 5), gpus(6+int(over)))
		}, admission.KeyCapExceeded},
		"key money": {two, func(v *admission.View, over int64) {
			capKey(v).MaxPerDay = 20 * money.USD
			v.Key.Spent.Add(hoursAhead(10, 11), gpus(1), usd(12*money.USD+money.MicroUSD(over)))
		}, admission.KeyCapExceeded},
		"key lead": {two, func(v *admission.View, over int64) {
			capKey(v).MaxLead = time.Hour - time.Duration(over)
		}, admission.KeyCapExceeded},
		"key window": {two, func(v *admission.View, over int64) {
			capKey(v).MaxWindow = 2*time.Hour - time.Duration(over)
		}, admission.KeyCapExceeded},
		"window": {two, func(v *admission.View, over int64) {
			v.Pool.Timers.MaxLease = 2*time.Hour - time.Duration(over)
		}, admission.WindowTooLong},
		"past": {two, func(v *admission.View, over int64) {
			v.Now = two.Window.Start.Add(time.Minute + time.Duration(over))
		}, admission.WindowInPast},
		"capacity": {newRequest(reservation.Guaranteed, 4, 4, hoursAhead(1, 3)), func(v *admission.View, over int64) {
			addPromise(v, "a", hoursAhead(0, 2), 4+int(over), 3)
		}, admission.CapacityExhausted},
		"pause": {two, func(v *admission.View, over int64) { v.Pool.Paused = over == 1 }, admission.PrewarmPaused},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at, beyond := emptyView(), emptyView()
			tc.set(&at, 0)
			require.Empty(t, blockerCodes(admission.Decide(tc.req, at)), "at the limit")
			tc.set(&beyond, 1)
			d := admission.Decide(tc.req, beyond)
			require.Equal(t, []admission.Code{tc.want}, blockerCodes(d), "one beyond")
			require.NotEmpty(t, d.Reasons[0].Message)
			require.Empty(t, d.Slots)
			require.Equal(t, tc.want == admission.CapacityExhausted, d.OnlyCapacity())
		})
	}
}

func TestAnotherDayIsAnotherBudget(t *testing.T) {
	t.Parallel()
	v := emptyView()
	v.Limits.SpeculationPerDay = 10 * money.USD
	v.SpeculativeCommitments.Add(hoursAhead(1, 2), gpus(1), usd(10*money.USD))
	require.Equal(t, []admission.Code{admission.BudgetExceeded},
		blockerCodes(admission.Decide(newRequest(reservation.Speculative, 1, 1, hoursAhead(15, 16)), v)))
	require.True(t, admission.Decide(newRequest(reservation.Speculative, 1, 1, hoursAhead(16, 17)), v).Accepted(),
		"it is midnight UTC")
}

func TestEveryBlockerIsListed(t *testing.T) {
	t.Parallel()
	v := emptyView()
	v.Pool.Paused = true
	v.Limits = quota.Limits{GPUs: 4, SpeculationPerDay: money.USD}
	v.Key.Caps = &quota.Caps{}
	addPromise(&v, "full", hoursAhead(-2, 30), 8, 0, 1, 2)
	req := newRequest(reservation.Speculative, 2, 8, hoursAhead(-1, 24))
	d := admission.Decide(req, v)
	require.Equal(t, []admission.Code{
		admission.WindowInPast, admission.WindowTooLong, admission.PrewarmPaused, admission.QuotaExceeded,
		admission.BudgetExceeded, admission.KeyCapExceeded, admission.KeyCapExceeded, admission.KeyCapExceeded,
		admission.CapacityExhausted,
	}, blockerCodes(d))
	require.False(t, d.OnlyCapacity())
	require.Empty(t, d.Offers, "a paused pool takes no smaller speculative one either")
	units := map[string]bool{}
	for _, r := range d.Reasons {
		units[string(r.Code)+r.Unit] = true
		require.Less(t, min(r.Limit, r.Asked), max(r.Limit, r.Asked, 1), "%s says what was allowed and what was asked",
			r.Code)
	}
	require.Len(t, units, len(d.Reasons))
}

func TestWhatThePoolCanNeverHold(t *testing.T) {
	t.Parallel()
	for name, shape := range map[string]capacity.Shape{
		"more nodes than it has": {Nodes: 5, PerNode: 1}, "more GPUs than a node has": {Nodes: 1, PerNode: 9},
		"nothing": {}, "less than nothing": {Nodes: -1, PerNode: -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := admission.Decide(admission.Request{Class: reservation.Guaranteed, Shape: shape,
				Window: hoursAhead(1, 2)},
				emptyView())
			require.Equal(t, []admission.Code{admission.NoMatchingHardware}, blockerCodes(d))
			require.False(t, d.OnlyCapacity(), "waiting does not help")
		})
	}
}

func TestAWindowMustHaveAFuture(t *testing.T) {
	t.Parallel()
	for name, w := range map[string]calendar.Interval{
		"empty": hoursAhead(1, 1), "backwards": hoursAhead(2, 1), "over": {Start: now.Add(-50 * time.Second), End: now},
	} {
		require.Equal(t, []admission.Code{admission.WindowInPast},
			blockerCodes(admission.Decide(newRequest(reservation.Guaranteed, 1, 1, w), emptyView())), name)
	}
	late := admission.Request{Class: reservation.Guaranteed, Shape: capacity.Shape{Nodes: 1, PerNode: 1},
		Window: hoursAhead(-1, 1), Now: true}
	require.True(t, admission.Decide(late, emptyView()).Accepted(), "a request for now is never late")
}

func TestSpeculativeReservationsGiveWay(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		set  func(v *admission.View)
		req  admission.Request
		want []string // the displaced
		code []admission.Code
	}{
		"not while there is room": {func(v *admission.View) {
			addSpeculative(v, "a", hoursAhead(0, 9), 8, 0, 1, 2)
		}, newRequest(reservation.Guaranteed, 1, 8, hoursAhead(1, 2)), nil, nil},
		"the least likely first": {func(v *admission.View) {
			addSpeculative(v, "unlikely", hoursAhead(0, 9), 8, 1)
			addSpeculative(v, "likely", hoursAhead(0, 9), 8, 0, 2, 3)
		}, newRequest(reservation.Guaranteed, 1, 8, hoursAhead(1, 2)), []string{"unlikely"}, nil},
		"as many as it takes": {func(v *admission.View) {
			addSpeculative(v, "one", hoursAhead(0, 9), 8, 0)
			addSpeculative(v, "two", hoursAhead(0, 9), 8, 1)
			addSpeculative(v, "three", hoursAhead(0, 9), 8, 2, 3)
		}, newRequest(reservation.Guaranteed, 2, 8, hoursAhead(1, 2)), []string{"one", "two"}, nil},
		"one that need not have gone stays": {func(v *admission.View) {
			addSpeculative(v, "small", hoursAhead(0, 9), 2, 0)
			addSpeculative(v, "large", hoursAhead(0, 9), 6, 0)
			addPromise(v, "firm", hoursAhead(0, 9), 8, 1, 2, 3)
		}, newRequest(reservation.Guaranteed, 1, 6, hoursAhead(1, 2)), []string{"large"}, nil},
		"another time is left alone": {func(v *admission.View) {
			addSpeculative(v, "later", hoursAhead(2, 9), 8, 0, 1, 2, 3)
			addSpeculative(v, "same time", hoursAhead(1, 2), 8, 0, 1, 2, 3)
		}, newRequest(reservation.Guaranteed, 1, 1, hoursAhead(1, 2)), []string{"same time"}, nil},
		"promises do not": {func(v *admission.View) {
			addSpeculative(v, "speculative", hoursAhead(0, 9), 8, 0)
			addPromise(v, "firm", hoursAhead(0, 9), 8, 1, 2, 3)
		}, newRequest(reservation.Guaranteed, 2, 8, hoursAhead(1, 2)), nil,
			[]admission.Code{admission.CapacityExhausted}},
		"not to another speculative one": {func(v *admission.View) {
			addSpeculative(v, "speculative", hoursAhead(0, 9), 8, 0, 1, 2, 3)
		}, newRequest(reservation.Speculative, 1, 1, hoursAhead(1, 2)), nil,
			[]admission.Code{admission.CapacityExhausted}},
		"one on other slots of a shrunk pool stays": {func(v *admission.View) {
			addPromise(v, "firm", hoursAhead(0, 9), 8, 1, 2, 3)
			addSpeculative(v, "over", hoursAhead(0, 9), 8, 1)
			addSpeculative(v, "here", hoursAhead(0, 9), 8, 0)
		}, newRequest(reservation.Guaranteed, 1, 8, hoursAhead(1, 2)), []string{"here"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := emptyView()
			tc.set(&v)
			d := admission.Decide(tc.req, v)
			require.Equal(t, tc.want, d.DisplacedIDs())
			require.Equal(t, tc.code, blockerCodes(d))
		})
	}
}

func TestOffers(t *testing.T) {
	t.Parallel()
	v := emptyView()
	addPromise(&v, "morning", hoursAhead(0, 5), 8, 0, 1, 2)
	addPromise(&v, "part", hoursAhead(0, 9), 5, 3)
	d := admission.Decide(newRequest(reservation.Guaranteed, 2, 8, hoursAhead(1, 3)), v)
	require.Equal(t, []admission.Offer{
		{Shape: capacity.Shape{Nodes: 2, PerNode: 8}, Window: hoursAhead(5, 7), Cost: 32 * money.USD},
		{Shape: capacity.Shape{Nodes: 1, PerNode: 3}, Window: hoursAhead(1, 3), Cost: 6 * money.USD},
	}, d.Offers)

	v.Limits.GPUs = 2
	d = admission.Decide(newRequest(reservation.Guaranteed, 2, 8, hoursAhead(1, 3)), v)
	require.Equal(t,
		[]admission.Offer{{Shape: capacity.Shape{Nodes: 1, PerNode: 2}, Window: hoursAhead(1, 3),
			Cost: 4 * money.USD}}, d.Offers,
		"no later start helps against a quota")
}
