package admission_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/core/reservation"
)

const minute = time.Minute

// windowAhead begins and ends so long after now.
func windowAhead(from, to time.Duration) calendar.Interval {
	return calendar.Interval{Start: now.Add(from), End: now.Add(to)}
}

// fillPool books every GPU of the pool.
func fillPool(v *admission.View, id string, w calendar.Interval) { addPromise(v, id, w, 8, 0, 1, 2, 3) }

// offeredStarts are the offers of the asked shape and length at another time.
func offeredStarts(r admission.Request, d admission.Decision) (later []calendar.Interval) {
	for _, o := range d.Offers {
		if o.Pool == "" && o.Shape == r.Shape && o.Window.Start != r.Window.Start {
			later = append(later, o.Window)
		}
	}
	return later
}

// probeShorter are the lengths of the offers of the asked shape from the asked start.
func probeShorter(r admission.Request, d admission.Decision) (lengths []time.Duration) {
	for _, o := range d.Offers {
		if o.Pool == "" && o.Shape == r.Shape && o.Window.Start == r.Window.Start {
			lengths = append(lengths, o.Window.Length())
		}
	}
	return lengths
}

func TestALaterOfferBeginsWhenThereIsRoom(t *testing.T) {
	t.Parallel()
	const days = 24 * time.Hour
	for name, tc := range map[string]struct {
		asked, booked calendar.Interval
		want          []calendar.Interval
	}{
		"after what is booked": {hoursAhead(1, 3), hoursAhead(0, 5), []calendar.Interval{hoursAhead(5, 7)}},
		"never in the past":    {hoursAhead(-3, -1), hoursAhead(-9, -8), []calendar.Interval{hoursAhead(0, 2)}},
		"counted from now, not before": {
			hoursAhead(-3, -1), windowAhead(-days, 14*days),
			[]calendar.Interval{windowAhead(14*days, 14*days+2*time.Hour)},
		},
		"as far as is searched": {
			hoursAhead(1, 3), windowAhead(0, 14*days+time.Hour),
			[]calendar.Interval{windowAhead(14*days+time.Hour, 14*days+3*time.Hour)},
		},
		"and no farther": {hoursAhead(1, 3), windowAhead(0, 14*days+time.Hour+1), nil},
	} {
		v := emptyView()
		fillPool(&v, "all", tc.booked)
		r := newRequest(reservation.Guaranteed, 1, 8, tc.asked)
		require.Equal(t, tc.want, offeredStarts(r, admission.Decide(r, v)), name)
	}
}

func TestALaterOfferWaitsForEveryLimit(t *testing.T) {
	t.Parallel()
	r := newRequest(reservation.Guaranteed, 1, 8, hoursAhead(1, 3))
	dollar := usd(money.USD)
	for name, tc := range map[string]struct {
		set  func(v *admission.View)
		want []calendar.Interval
	}{
		"the organization's": {func(v *admission.View) {
			v.Limits.GPUs = 8
			v.Committed.Hold(hoursAhead(0, 4), gpus(1))
		}, []calendar.Interval{hoursAhead(4, 6)}},
		"the last of two": {func(v *admission.View) {
			v.Limits.GPUs, v.Limits.CPUs = 8, quota.AtMost(8)
			v.Pool.NodeCPUs = 8
			v.Committed.Hold(hoursAhead(0, 4), gpus(1))
			v.Committed.Hold(hoursAhead(0, 6), quota.Vector{quota.CPUs: 1})
		}, []calendar.Interval{hoursAhead(6, 8)}},
		"the key's day": {func(v *admission.View) {
			capKey(v).MaxPerDay = 16 * money.USD
			v.Key.Spent.Spend(now, dollar)
			v.Key.Spent.Spend(now.AddDate(0, 0, 1), dollar)
		}, []calendar.Interval{hoursAhead(40, 42)}},
		"the user's day": {func(v *admission.View) {
			caps := *capKey(v)
			caps.MaxPerDay = 16 * money.USD
			v.Key, v.User = admission.Capped{}, admission.Capped{Caps: &caps, Spent: &quota.Commitments{}}
			v.User.Spent.Spend(now, dollar)
		}, []calendar.Interval{hoursAhead(16, 18)}},
		"the maker's day": {func(v *admission.View) {
			capKey(v).MaxPerDay = 16 * money.USD
			v.Key.Spent.Spend(now, dollar)
			v.Key, v.Makers = admission.Capped{}, []admission.Capped{v.Key}
		}, []calendar.Interval{hoursAhead(16, 18)}},
		"a share, whatever changes before": {func(v *admission.View) {
			v.Pool.OnlineShare = 500
			v.Used = map[capacity.Workload]*calendar.Profile{capacity.Online: {}}
			v.Used[capacity.Online].Add(hoursAhead(0, 5), 9)
			v.Committed.Hold(hoursAhead(2, 4), gpus(1))
			v.Committed.Hold(hoursAhead(7, 9), gpus(1))
		}, []calendar.Interval{hoursAhead(5, 7)}},
		"a share, with nothing committed": {func(v *admission.View) {
			v.Pool.OnlineShare, v.Committed = 500, nil
			v.Used = map[capacity.Workload]*calendar.Profile{capacity.Online: {}}
			v.Used[capacity.Online].Add(hoursAhead(0, 5), 9)
		}, []calendar.Interval{hoursAhead(5, 7)}},
		"none that time alone lifts": {func(v *admission.View) { capKey(v).MaxGPUs = 7 }, nil},
		"none that a later start makes worse": {func(v *admission.View) {
			capKey(v).MaxLead = 0
			v.Committed.Hold(hoursAhead(2, 4), gpus(1))
		}, nil},
	} {
		v := emptyView()
		tc.set(&v)
		d := admission.Decide(r, v)
		require.False(t, d.Accepted(), name)
		require.Equal(t, tc.want, offeredStarts(r, d), name)
	}
}

// A window that no limit allows on one day is tried on the next, as often as is
// worth it.
func TestALaterOfferIsTriedEightTimes(t *testing.T) {
	t.Parallel()
	for days, found := range map[int]bool{7: true, 8: false} {
		v := emptyView()
		capKey(&v).MaxPerDay = 16 * money.USD
		for day := range days {
			v.Key.Spent.Spend(now.AddDate(0, 0, day), usd(money.USD))
		}
		r := newRequest(reservation.Guaranteed, 1, 8, hoursAhead(1, 3))
		require.Equal(t, found, len(offeredStarts(r, admission.Decide(r, v))) == 1, "%d days are spent", days)
	}
}

// A shorter window is the longest whole number of minutes that is free, and at
// least a quarter of what was asked.
func TestAShorterOfferIsTheLongestOfWholeMinutes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		length, free time.Duration // what is asked, and free from its start on
		want         []time.Duration
	}{
		"all but a minute":        {120 * minute, 119 * minute, []time.Duration{119 * minute}},
		"all but a second":        {120 * minute, 120*minute - time.Second, []time.Duration{119 * minute}},
		"half":                    {120 * minute, 60 * minute, []time.Duration{60 * minute}},
		"not part of a minute":    {120 * minute, 61*minute - 1, []time.Duration{60 * minute}},
		"a quarter":               {120 * minute, 30 * minute, []time.Duration{30 * minute}},
		"less than a quarter":     {120 * minute, 30*minute - 1, nil},
		"a quarter is rounded up": {122 * minute, 31 * minute, []time.Duration{31 * minute}},
		"not down":                {122 * minute, 31*minute - 1, nil},
		"of parts of a minute": {
			119*minute + 30*time.Second, 119*minute + time.Second, []time.Duration{119 * minute},
		},
		"one of two minutes":    {2 * minute, minute, []time.Duration{minute}},
		"nothing of one minute": {minute, minute - 1, nil},
		"nothing at all":        {120 * minute, 0, nil},
	} {
		v := emptyView()
		fillPool(&v, "next", windowAhead(time.Hour+tc.free, 20*time.Hour))
		r := newRequest(reservation.Guaranteed, 1, 8, windowAhead(time.Hour, time.Hour+tc.length))
		d := admission.Decide(r, v)
		require.False(t, d.Accepted(), name)
		require.Equal(t, tc.want, probeShorter(r, d), name)
	}
}

func TestNoShorterOfferOfWhatCannotBe(t *testing.T) {
	t.Parallel()
	v := emptyView()
	over := newRequest(reservation.Guaranteed, 1, 8, hoursAhead(-2, 3))
	require.Empty(t, probeShorter(over, admission.Decide(over, v)), "its start is past")
	huge := newRequest(reservation.Guaranteed, 5, 8, hoursAhead(1, 30))
	require.Empty(t, probeShorter(huge, admission.Decide(huge, v)), "no pool of this size ever holds it")
	long := newRequest(reservation.Guaranteed, 1, 8, hoursAhead(1, 30))
	require.Equal(
		t,
		[]time.Duration{24 * time.Hour},
		probeShorter(long, admission.Decide(long, v)),
		"the longest lease of the pool",
	)
}

func TestASmallerOfferIsWithinThePoolAndTheLimits(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		asked capacity.Shape
		set   func(v *admission.View)
		want  capacity.Shape
	}{
		"the whole pool": {
			capacity.Shape{Nodes: 99, PerNode: 8}, func(*admission.View) {}, capacity.Shape{Nodes: 4, PerNode: 8},
		},
		"one less": {
			capacity.Shape{Nodes: 1, PerNode: 8},
			func(v *admission.View) { v.Limits.GPUs = 7 }, capacity.Shape{Nodes: 1, PerNode: 7},
		},
		"one GPU": {
			capacity.Shape{Nodes: 1, PerNode: 2},
			func(v *admission.View) { v.Limits.GPUs = 1 }, capacity.Shape{Nodes: 1, PerNode: 1},
		},
		"none": {
			capacity.Shape{Nodes: 1, PerNode: 1}, func(v *admission.View) { v.Limits.GPUs = 0 }, capacity.Shape{},
		},
		"none where none is": {
			capacity.Shape{Nodes: 1, PerNode: 8}, func(v *admission.View) { fillPool(v, "all", hoursAhead(0, 9)) },
			capacity.Shape{},
		},
		"what is in one piece": {
			capacity.Shape{Nodes: 1, PerNode: 8},
			func(v *admission.View) { addPromise(v, "some", hoursAhead(0, 9), 5, 0, 1, 2, 3) },
			capacity.Shape{Nodes: 1, PerNode: 3},
		},
		"an unequal last node": {
			capacity.Shape{Nodes: 4, PerNode: 8},
			func(v *admission.View) { addPromise(v, "some", hoursAhead(0, 9), 5, 3) },
			capacity.Shape{Nodes: 4, PerNode: 8, Short: 5},
		},
		"what the key may spend": {
			capacity.Shape{Nodes: 1, PerNode: 8},
			func(v *admission.View) { capKey(v).MaxPerDay = 11 * money.USD }, capacity.Shape{Nodes: 1, PerNode: 5},
		},
		"what the share leaves": {capacity.Shape{Nodes: 1, PerNode: 8}, func(v *admission.View) {
			v.Pool.OnlineShare = 500
			v.Used = map[capacity.Workload]*calendar.Profile{capacity.Online: {}}
			v.Used[capacity.Online].Add(hoursAhead(0, 9), 12)
		}, capacity.Shape{Nodes: 1, PerNode: 4}},
	} {
		v := emptyView()
		tc.set(&v)
		r := admission.Request{Class: reservation.Guaranteed, Shape: tc.asked, Window: hoursAhead(1, 3)}
		d := admission.Decide(r, v)
		require.False(t, d.Accepted(), name)
		var offered capacity.Shape
		for _, o := range d.Offers {
			if o.Window == r.Window {
				offered = o.Shape
			}
		}
		require.Equal(t, tc.want, offered, name)
	}
}

// Where more GPUs would have a place than were asked for, because they lie on the
// nodes in other parts, that is still no smaller offer.
func TestASmallerOfferIsSmaller(t *testing.T) {
	t.Parallel()
	v := emptyView()
	addPromise(&v, "some", hoursAhead(0, 9), 5, 1)
	addPromise(&v, "rest", hoursAhead(0, 9), 8, 2, 3)
	d := admission.Decide(newRequest(reservation.Guaranteed, 2, 5, hoursAhead(1, 3)), v)
	require.Equal(t, capacity.Shape{Nodes: 2, PerNode: 8, Short: 7}, d.Offers[1].Shape,
		"9 of 10, though 11 have a place")
	require.Len(t, d.Offers, 2)
}

func TestACalendarOfSmallerNodesThanItsPool(t *testing.T) {
	t.Parallel()
	v := emptyView()
	v.Slots = calendar.NewSlots(1, 7)
	d := admission.Decide(newRequest(reservation.Guaranteed, 2, 8, hoursAhead(1, 3)), v)
	require.Equal(t,
		[]admission.Offer{{Shape: capacity.Shape{Nodes: 1, PerNode: 7}, Window: hoursAhead(1, 3),
			Cost: 14 * money.USD}}, d.Offers)
}

func TestOtherPoolsAreOfferedInTheirOrder(t *testing.T) {
	t.Parallel()
	v := emptyView()
	fillPool(&v, "all", hoursAhead(0, 999))
	for _, p := range []struct {
		id      string
		perNode int
		booked  bool
	}{{"small", 4, false}, {"full", 8, true}, {"large", 16, false}, {"third", 8, false}, {"fourth", 8, false}} {
		o := admission.PoolView{Pool: testPool(), Slots: calendar.NewSlots(4, p.perNode)}
		o.Pool.ID, o.Pool.PerNode = p.id, p.perNode
		if p.booked {
			o.Slots.Force(calendar.Booking{ID: "b", Interval: hoursAhead(0, 9), Slots: []int{0, 1, 2, 3},
				GPUs: p.perNode})
		}
		v.Others = append(v.Others, o)
	}
	d := admission.Decide(newRequest(reservation.Guaranteed, 1, 8, hoursAhead(1, 3)), v)
	require.Equal(t, []admission.Offer{
		{Pool: "small", Shape: capacity.Shape{Nodes: 2, PerNode: 4}, Window: hoursAhead(1, 3), Cost: 32 * money.USD},
		{Pool: "large", Shape: capacity.Shape{Nodes: 1, PerNode: 8}, Window: hoursAhead(1, 3), Cost: 8 * money.USD},
		{Pool: "third", Shape: capacity.Shape{Nodes: 1, PerNode: 8}, Window: hoursAhead(1, 3), Cost: 16 * money.USD},
	}, d.Offers, "three of those with room")
}

// An offer that would push somebody out, or move anybody, is none.
func TestAnOfferIsAtNobodysExpense(t *testing.T) {
	t.Parallel()
	v := emptyView()
	fillPool(&v, "all", hoursAhead(0, 5))
	r := newRequest(reservation.Guaranteed, 1, 8, hoursAhead(1, 3))
	f := admission.Observe(r, v)
	require.Len(t, admission.Judge(r, f).Offers, 1)
	probe := f.Probes[0]
	f.Probes[0].Facts.Room.Moves = []calendar.Move{{ID: "b"}}
	require.Empty(t, admission.Judge(r, f).Offers)
	f.Probes[0] = probe
	f.Probes[0].Facts.Room.Candidates = []admission.Candidate{{ID: "b"}}
	require.Empty(t, admission.Judge(r, f).Offers)
}

// What GPUs cost is their part of the node's price for the time, to the rounding
// of an hour's price and of the whole.
func TestCostIsPriceTimesGPUsTimesTime(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := capacity.Pool{
			PerNode:  rapid.IntRange(1, 16).Draw(t, "per node"),
			MaxNodes: 99,
			Price:    money.MicroUSD(rapid.IntRange(0, 90_000_000).Draw(t, "price")),
		}
		s, ok := capacity.Layout{}.Shape(rapid.IntRange(1, 500).Draw(t, "gpus"), p.PerNode)
		require.True(t, ok)
		length := time.Duration(rapid.IntRange(-1, 100_000).Draw(t, "seconds")) * time.Second
		want := max(0, float64(p.Price)*float64(s.GPUs())/float64(p.PerNode)*length.Hours())
		require.InDelta(t, want, float64(admission.Cost(p, s, length)), 1+max(0, length.Hours()))
	})
	require.Zero(
		t,
		admission.Cost(capacity.Pool{Price: 1}, capacity.Shape{Nodes: 1, PerNode: 1}, time.Hour),
		"a pool without GPUs",
	)
	require.Zero(t, admission.Cost(testPool(), capacity.Shape{Nodes: 1}, time.Hour), "a shape without GPUs")
}
