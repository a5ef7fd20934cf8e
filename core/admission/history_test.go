package admission_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/core/reservation"
)

// history is what three organizations of a cohort do to one pool.
type history struct {
	slots       *calendar.Slots
	members     []quota.Member
	speculative []*quota.Commitments
	kept        map[string]entry
}

type entry struct {
	org   int
	class reservation.Class
	b     calendar.Booking
	ask   quota.Ask
}

func (h *history) viewOf(org int) admission.View {
	v := emptyView()
	v.Slots, v.Limits, v.Committed, v.SpeculativeCommitments = h.slots, h.members[org].Limits,
		h.members[org].Committed, h.speculative[org]
	for i, m := range h.members {
		if i != org {
			v.Cohort = append(v.Cohort, m)
		}
	}
	for id, e := range h.kept {
		v.Movable = append(v.Movable, id)
		if e.class == reservation.Speculative {
			v.Speculative = append(v.Speculative, admission.Speculative{Booking: e.b, Share: float64(e.org),
				Probability: 0.5})
		}
	}
	return v
}

// bookDecision carries an accepted decision out.
func (h *history) bookDecision(t *rapid.T, id string, org int, r admission.Request, d admission.Decision) {
	for _, m := range d.Moves {
		require.NoError(t, h.slots.Move(m.ID, m.To))
		e := h.kept[m.ID]
		e.b.Slots = m.To
		h.kept[m.ID] = e
	}
	for _, gone := range d.Displaced {
		require.Equal(t, reservation.Speculative, h.kept[gone.ID].class, "a promise is never broken")
		h.endBooking(gone.ID)
	}
	e := entry{org: org, class: r.Class, b: calendar.Booking{ID: id, Interval: d.Window, Slots: d.Slots,
		GPUs: r.Shape.PerNode, Short: r.Shape.Short}}
	e.ask = quota.Ask{Window: d.Window, Demand: quota.Demand(testPool(), r.Shape),
		Spend: quota.SpendOf(d.Window, r.Shape.GPUs(), d.Cost)}
	require.NoError(t, h.slots.Place(e.b))
	h.kept[id] = e
	h.members[org].Committed.Add(e.ask.Window, e.ask.Demand, e.ask.Spend)
	if r.Class == reservation.Speculative {
		h.speculative[org].Add(e.ask.Window, e.ask.Demand, e.ask.Spend)
	}
}

func (h *history) endBooking(id string) {
	e := h.kept[id]
	h.slots.Remove(id)
	h.members[e.org].Committed.Remove(e.ask.Window, e.ask.Demand, e.ask.Spend)
	if e.class == reservation.Speculative {
		h.speculative[e.org].Remove(e.ask.Window, e.ask.Demand, e.ask.Spend)
	}
	delete(h.kept, id)
}

// checkInvariants recounts everything from the bookings that are kept.
func (h *history) checkInvariants(t *rapid.T) {
	fresh := calendar.NewSlots(4, 8)
	counted := []*quota.Commitments{{}, {}, {}}
	for _, e := range h.kept {
		require.NoError(t, fresh.Place(e.b), "the pool is over-committed")
		counted[e.org].Add(e.ask.Window, e.ask.Demand, e.ask.Spend)
	}
	for hour := range 40 {
		at := hoursAhead(hour, hour+1).Start
		shared, lendable := int64(0), int64(0)
		for org, m := range h.members {
			require.Equal(t, counted[org].At(at), m.Committed.At(at))
			require.Equal(t, counted[org].On(at), m.Committed.On(at))
			nominal, borrows, lends := int64(m.Limits.GPUs), m.Limits.Borrowing[quota.GPUs].Int64(),
				m.Limits.Lending[quota.GPUs].Int64()
			use := counted[org].At(at)[quota.GPUs]
			require.LessOrEqual(t, use, nominal+borrows)
			require.LessOrEqual(t, counted[org].On(at).GPUSeconds, m.Limits.GPUHours.Int64()*3600)
			shared += max(0, use-(nominal-min(lends, nominal)))
			lendable += min(lends, nominal)
		}
		require.LessOrEqual(t, shared, lendable)
	}
}

// Whatever organizations ask, in whatever order, no slot is over-committed, no
// limit is exceeded, what is counted is what is booked, and a promise stands
// until its holder ends it.
func TestHistoriesHold(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		h := &history{slots: calendar.NewSlots(4, 8), kept: map[string]entry{}}
		for range 3 {
			m := quota.Member{Committed: &quota.Commitments{}, Limits: quota.Limits{
				GPUs: rapid.IntRange(4, 16).Draw(t, "nominal"), SpeculationPerDay: 500 * money.USD, Cohort: "all",
				Borrowing: quota.Bounds{quota.GPUs: quota.AtMost(rapid.Int64Range(0, 12).Draw(t, "borrows"))},
				Lending:   quota.Bounds{quota.GPUs: quota.AtMost(rapid.Int64Range(0, 12).Draw(t, "lends"))},
				GPUHours:  quota.AtMost(rapid.Int64Range(20, 400).Draw(t, "GPU-hours")),
			}}
			h.members, h.speculative = append(h.members, m), append(h.speculative, &quota.Commitments{})
		}
		for i := range rapid.IntRange(1, 25).Draw(t, "steps") {
			org := rapid.IntRange(0, 2).Draw(t, "organization")
			shape, _ := capacity.Layout{}.Shape(rapid.IntRange(1, 16).Draw(t, "gpus"), 8)
			r := admission.Request{Shape: shape,
				Class: rapid.SampledFrom([]reservation.Class{reservation.Guaranteed, reservation.Speculative}).Draw(t,
					"class")}
			if r.Window = drawWindow(t); rapid.Bool().Draw(t, "flexible") {
				r.Range = calendar.TimeRange{StartNotEarlierThan: r.Window.Start,
					EndNotLaterThan: hoursAhead(0, 36).End,
					MinDuration:     r.Window.Length(), MaxDuration: 2 * r.Window.Length()}
			}
			record := admission.NewRecord(r, h.viewOf(org))
			same, diff := admission.Replay(record)
			require.True(t, same, diff)
			if d := record.Decision; d.Accepted() {
				h.bookDecision(t, fmt.Sprint("b", i), org, r, d)
			} else {
				require.Empty(t, d.Displaced, "unplaceable work displaces nothing")
				require.Empty(t, d.Moves)
			}
			h.checkInvariants(t)
		}
	})
}

func TestAFlexibleRequestFindsItsWindow(t *testing.T) {
	t.Parallel()
	v := emptyView()
	addPromise(&v, "morning", hoursAhead(0, 5), 8, 0, 1, 2, 3)
	addPromise(&v, "evening", hoursAhead(8, 20), 8, 0, 1, 2, 3)
	r := admission.Request{Class: reservation.Guaranteed, Shape: capacity.Shape{Nodes: 1, PerNode: 8},
		Range: calendar.TimeRange{
			StartNotEarlierThan: hoursAhead(1, 2).Start, EndNotLaterThan: hoursAhead(0, 12).End,
			MinDuration: hoursAhead(0, 2).Length(),
			MaxDuration: hoursAhead(0, 6).Length(),
		}}
	d := admission.Decide(r, v)
	require.Empty(t, blockerCodes(d))
	require.Equal(t, hoursAhead(5, 8), d.Window, "the earliest start, then the longest")
	require.Equal(t, 24*money.USD, d.Cost)

	v.Committed.Hold(hoursAhead(5, 6), gpus(1000))
	require.Equal(t, hoursAhead(6, 8), admission.Decide(r, v).Window, "when the quota allows it")

	r.Range.EndNotLaterThan = hoursAhead(0, 6).End
	d = admission.Decide(r, v)
	require.Contains(t, blockerCodes(d), admission.CapacityExhausted)
	require.Equal(t, hoursAhead(6, 8), d.Offers[0].Window)

	r.Range.MinDuration = -1
	require.Contains(t, blockerCodes(admission.Decide(r, v)), admission.WindowInPast,
		"a range that makes no sense has no window")
}

func TestBookingsMoveBeforeTheyAreDisplaced(t *testing.T) {
	t.Parallel()
	v := emptyView()
	addPromise(&v, "firm", hoursAhead(0, 9), 8, 2, 3)
	addSpeculative(&v, "a", hoursAhead(0, 9), 4, 0)
	addSpeculative(&v, "b", hoursAhead(0, 9), 4, 1)
	r := newRequest(reservation.Guaranteed, 1, 8, hoursAhead(1, 2))
	require.Equal(t, []string{"a"}, admission.Decide(r, v).DisplacedIDs())
	v.Movable = []string{"b"}
	d := admission.Decide(r, v)
	require.Empty(t, d.Displaced)
	require.Equal(t, []calendar.Move{{ID: "b", From: []int{1}, To: []int{0}}}, d.Moves)
	require.Equal(t, []int{1}, d.Slots)
}

func TestTheDisplacedAreOfferedAnotherPlace(t *testing.T) {
	t.Parallel()
	v := emptyView()
	addPromise(&v, "firm", hoursAhead(0, 9), 8, 2, 3)
	addSpeculative(&v, "a", hoursAhead(0, 4), 8, 0)
	addSpeculative(&v, "b", hoursAhead(0, 4), 8, 1)
	v.Speculative[1].Share = 0.5
	d := admission.Decide(newRequest(reservation.Guaranteed, 1, 8, hoursAhead(1, 6)), v)
	require.Equal(t, []admission.Displacement{{ID: "b", Offer: &admission.Offer{
		Shape: capacity.Shape{Nodes: 1, PerNode: 8}, Window: hoursAhead(4, 8), Cost: 32 * money.USD,
	}}}, d.Displaced, "the largest share gives way, though it is likelier")
}

func TestSharesLoseNoGPU(t *testing.T) {
	t.Parallel()
	for permille := range 1001 {
		p := capacity.Pool{PerNode: 1, MaxNodes: 7, OnlineShare: permille}
		online, batch := admission.Shares(p)
		if permille == 0 {
			require.Equal(t, []int{7, 7}, []int{online, batch}, "not split")
			continue
		}
		require.Equal(t, 7, online+batch)
		require.InDelta(t, float64(7*permille)/1000, float64(online), 0.5)
	}
}

func TestASplitPoolKeepsItsShares(t *testing.T) {
	t.Parallel()
	v := emptyView()
	v.Pool.OnlineShare = 500 // 16 of 32 GPUs
	v.Used = map[capacity.Workload]*calendar.Profile{capacity.Online: {}}
	v.Used[capacity.Online].Add(hoursAhead(0, 4), 10)
	r := newRequest(reservation.Guaranteed, 1, 6, hoursAhead(1, 3))
	require.Empty(t, blockerCodes(admission.Decide(r, v)), "at the share")
	r.Shape.PerNode = 7
	d := admission.Decide(r, v)
	require.Equal(t, []admission.Code{admission.WorkloadShareExceeded}, blockerCodes(d))
	require.Equal(t, hoursAhead(4, 5).Start, d.Reasons[0].ClearsAt)
	require.Equal(t, []int64{16, 17}, []int64{d.Reasons[0].Limit, d.Reasons[0].Asked})
	require.True(t, d.OnlyCapacity(), "waiting helps")
	require.Equal(t, hoursAhead(4, 6), d.Offers[0].Window)
	r.Workload = capacity.Batch
	require.Empty(t, blockerCodes(admission.Decide(r, v)), "batch has its own share")
	r.Workload, v.Pool.BorrowIdle = capacity.Online, true
	require.Empty(t, blockerCodes(admission.Decide(r, v)), "what is free may be borrowed")
	addSpeculative(&v, "speculative", hoursAhead(0, 9), 8, 0, 1, 2, 3)
	require.Equal(t, []admission.Code{admission.CapacityExhausted}, blockerCodes(admission.Decide(r, v)),
		"nobody is displaced for it")
}
