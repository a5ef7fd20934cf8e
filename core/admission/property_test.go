package admission_test

import (
	"fmt"
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

// world is a drawn view, the bookings it was made of, and a request.
type world struct {
	view   admission.View
	placed []calendar.Booking
	req    admission.Request
}

func drawWorld(t *rapid.T) world {
	v := emptyView()
	v.Pool.ID = "own"
	v.Pool.OnlineShare, v.Pool.BorrowIdle = rapid.SampledFrom([]int{0, 0, 300, 500}).Draw(t, "online share"),
		rapid.Bool().Draw(t, "borrow")
	v.Used = map[capacity.Workload]*calendar.Profile{capacity.Online: {}, capacity.Batch: {}}
	w := world{}
	for i := range rapid.IntRange(0, 18).Draw(t, "bookings") {
		b := calendar.Booking{
			ID: fmt.Sprint("b", i), Interval: drawWindow(t), GPUs: rapid.IntRange(1, 8).Draw(t, "gpus"),
			Slots: rapid.SliceOfNDistinct(rapid.IntRange(0, 3), 1, 4, rapid.ID).Draw(t, "slots"),
		}
		b.Short = drawShort(t, len(b.Slots), b.GPUs)
		if v.Slots.Place(b) != nil {
			continue
		}
		w.placed = append(w.placed, b)
		v.Used[drawWorkload(t)].Add(b.Interval, b.Shape().GPUs())
		if rapid.IntRange(0, 2).Draw(t, "can move") == 0 {
			v.Movable = append(v.Movable, b.ID)
		}
		if rapid.Bool().Draw(t, "gives way") {
			v.Speculative = append(v.Speculative, admission.Speculative{
				Booking: b, Share: float64(rapid.IntRange(0, 2).Draw(t, "share")),
				Probability: float64(rapid.IntRange(0, 2).Draw(t, "probability")) / 2,
			})
		}
	}
	v.Pool.Paused = rapid.IntRange(0, 9).Draw(t, "paused") == 0
	v.Limits = quota.Limits{GPUs: rapid.IntRange(8, 40).Draw(t, "quota"), SpeculationPerDay: drawDollars(t, "budget")}
	caps := capKey(&v)
	caps.MaxGPUs, caps.MaxPerDay = rapid.IntRange(4, 40).Draw(t, "cap"), drawDollars(t, "cap money")
	for _, c := range []*quota.Commitments{v.Committed, v.SpeculativeCommitments, v.Key.Spent} {
		for range rapid.IntRange(0, 3).Draw(t, "commitments") {
			c.Add(drawWindow(t), gpus(rapid.IntRange(1, 8).Draw(t, "committed")), usd(drawDollars(t, "cost")/4))
		}
	}
	if rapid.Bool().Draw(t, "a person's key") {
		v.Key.Caps = nil
	}
	v.User = admission.Capped{Caps: &quota.Caps{
		MaxGPUs: rapid.IntRange(4, 40).Draw(t, "user's cap"), MaxPerDay: 10_000 * money.USD, MaxLead: 20 * time.Hour,
		MaxWindow:      9 * time.Hour,
		GPUHoursPerDay: quota.AtMost(rapid.Int64Range(-1, 200).Draw(t, "GPU-hours")),
	}, Spent: v.Committed}
	v.Others = []admission.PoolView{drawOther(t)}
	w.view = v
	shape, _ := capacity.Layout{}.Shape(rapid.IntRange(1, 40).Draw(t, "asked"), 8)
	w.req = admission.Request{
		Class: rapid.SampledFrom([]reservation.Class{reservation.Guaranteed, reservation.Speculative}).Draw(t, "class"),
		Shape: shape, Window: drawWindow(t), Now: rapid.Bool().Draw(t, "now"), Workload: drawWorkload(t),
	}
	return w
}

// drawShort draws how many GPUs the last of some nodes has fewer.
func drawShort(t *rapid.T, nodes, gpus int) int {
	if nodes < 2 || gpus < 2 || rapid.Bool().Draw(t, "even") {
		return 0
	}
	return rapid.IntRange(1, gpus-1).Draw(t, "short")
}

func drawWorkload(t *rapid.T) capacity.Workload {
	return rapid.SampledFrom([]capacity.Workload{capacity.Online, capacity.Batch}).Draw(t, "workload")
}

// drawOther is another pool, of nodes half as large.
func drawOther(t *rapid.T) admission.PoolView {
	p := testPool()
	p.ID, p.PerNode, p.Paused = "other", 4, rapid.Bool().Draw(t, "other paused")
	o := admission.PoolView{Pool: p, Slots: calendar.NewSlots(4, 4)}
	for i := range rapid.IntRange(0, 4).Draw(t, "other bookings") {
		b := calendar.Booking{ID: fmt.Sprint("o", i), Interval: drawWindow(t),
			GPUs: rapid.IntRange(1, 4).Draw(t, "other gpus"), Slots: []int{i}}
		o.Slots.Force(b)
	}
	return o
}

func drawWindow(t *rapid.T) calendar.Interval {
	from := rapid.IntRange(-1, 20).Draw(t, "from")
	return hoursAhead(from, from+rapid.IntRange(1, 10).Draw(t, "length"))
}

func drawDollars(t *rapid.T, label string) money.MicroUSD {
	return money.MicroUSD(rapid.IntRange(0, 400).Draw(t, label)) * money.USD
}

// rebuildCalendar is the calendar made again without some of the bookings.
func (w world) rebuildCalendar(without []string) *calendar.Slots {
	s := calendar.NewSlots(4, 8)
	gone := map[string]bool{}
	for _, id := range without {
		gone[id] = true
	}
	for _, b := range w.placed {
		if !gone[b.ID] {
			s.Force(b)
		}
	}
	return s
}

// writeView shows a view with everything that is hidden in it. The functions and
// pointers of a View are followed by hand.
func writeView(v admission.View) string {
	booked := ""
	for slot := range v.Slots.Size() {
		booked += fmt.Sprintln(v.Slots.On(slot, hoursAhead(-1000, 1000)), v.Slots.Fits(slot, 1, hoursAhead(0, 9)),
			v.Slots.Fits(slot, 8, hoursAhead(9, 20)))
	}
	return booked + fmt.Sprint(v.Speculative, *v.Committed, *v.SpeculativeCommitments, *v.Key.Spent, v.Limits,
		v.Key.Caps, v.Pool)
}

func TestAcceptedRequestsHaveTheirPlace(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		before := writeView(w.view)
		d := admission.Decide(w.req, w.view)
		require.Equal(t, before, writeView(w.view), "a decision changes nothing")
		require.Equal(t, d, admission.Decide(w.req, w.view), "and is the same again")
		if !d.Accepted() {
			require.Empty(t, d.Slots)
			require.Empty(t, d.Displaced)
			return
		}
		taken := calendar.Booking{ID: "new", Interval: w.req.Window, Slots: d.Slots, GPUs: w.req.Shape.PerNode,
			Short: w.req.Shape.Short}
		require.Len(t, d.Slots, w.req.Shape.Nodes)
		after := w.rebuildCalendar(d.DisplacedIDs())
		for _, m := range d.Moves {
			require.Contains(t, w.view.Movable, m.ID)
			require.NoError(t, after.Move(m.ID, m.To))
		}
		require.NoError(t, after.Place(taken))
		w.withinItsShare(t)
		require.LessOrEqual(t, int(w.view.Committed.Peak(w.req.Window)[quota.GPUs])+w.req.Shape.GPUs(),
			w.view.Limits.GPUs)
		w.displacedWell(t, d, taken)
	})
}

// withinItsShare checks that only borrowing exceeds what a split gives.
func (w world) withinItsShare(t *rapid.T) {
	online, batch := admission.Shares(w.view.Pool)
	share := map[capacity.Workload]int{capacity.Online: online, capacity.Batch: batch}[w.req.Workload]
	if !w.view.Pool.BorrowIdle {
		require.LessOrEqual(t, w.view.Used[w.req.Workload].Peak(w.req.Window)*min(1, w.view.Pool.OnlineShare)+
			w.req.Shape.GPUs(), share)
	}
}

// displacedWell checks that only speculative bookings went, only for a promise, only when
// the pool had no room as it was, and none that could have stayed.
func (w world) displacedWell(t *rapid.T, d admission.Decision, taken calendar.Booking) {
	if len(d.Displaced) == 0 {
		return
	}
	require.Equal(t, reservation.Guaranteed, w.req.Class)
	_, roomAlready := w.rebuildCalendar(nil).Find(w.req.Shape, w.req.Window, nil)
	require.False(t, roomAlready)
	speculative := map[string]calendar.Booking{}
	for _, b := range w.view.Speculative {
		speculative[b.ID] = b.Booking
	}
	online, batch := admission.Shares(w.view.Pool)
	if used := w.view.Used[w.req.Workload].Peak(w.req.Window) + w.req.Shape.GPUs(); w.view.Pool.OnlineShare > 0 {
		require.LessOrEqual(t, used, map[capacity.Workload]int{capacity.Online: online,
			capacity.Batch: batch}[w.req.Workload],
			"who borrows pushes nobody out")
	}
	after := w.rebuildCalendar(d.DisplacedIDs())
	require.NoError(t, after.Place(taken))
	for i := len(d.Displaced) - 1; i >= 0; i-- {
		if o := d.Displaced[i].Offer; o != nil {
			slots, ok := after.Find(o.Shape, o.Window, nil)
			require.True(t, ok, "the displaced are offered places beside each other")
			after.Force(calendar.Booking{ID: "offer" + d.Displaced[i].ID, Interval: o.Window, Slots: slots,
				GPUs: o.Shape.PerNode, Short: o.Shape.Short})
		}
	}
	after = w.rebuildCalendar(d.DisplacedIDs())
	require.NoError(t, after.Place(taken))
	for _, id := range d.DisplacedIDs() {
		require.Contains(t, speculative, id)
		require.Error(t, after.Place(speculative[id]), "%s could have stayed", id)
	}
}

func TestOffersTakenAtOnceSucceed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		d := admission.Decide(w.req, w.view)
		if d.Accepted() {
			require.Empty(t, d.Offers)
		}
		for _, o := range d.Offers {
			again := w.req
			again.Shape, again.Window = o.Shape, o.Window
			again.Now = again.Now && o.Window.Start.Equal(w.req.Window.Start)
			from := w.view
			if o.Pool == "other" {
				from.PoolView, again.Shape = from.Others[0], o.Shape
			}
			retry := admission.Decide(again, from)
			require.Empty(t, retry.Moves, "nor moves anybody")
			require.Equal(t, o.Cost, retry.Cost)
			require.True(t, retry.Accepted(), "%s at %s: %v", o.Shape, o.Window.Start, blockerCodes(retry))
			require.Empty(t, retry.Displaced, "an offer pushes nobody out")
			whole, ok := capacity.Layout{}.Shape(o.Shape.GPUs(), from.Pool.PerNode)
			require.True(t, ok)
			if o.Shape != w.req.Shape {
				require.Equal(t, whole, o.Shape, "asking for the offered number gives the offered shape")
			}
		}
	})
}

// The smaller offer is the largest that is accepted without pushing anyone out.
func TestTheSmallerOfferIsTheLargest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		w.req.Now = true
		d := admission.Decide(w.req, w.view)
		if d.Accepted() {
			return
		}
		offered := 0
		for _, o := range d.Offers {
			if o.Pool == "own" && o.Window == w.req.Window {
				offered = o.Shape.GPUs()
			}
		}
		for n := w.req.Shape.GPUs() - 1; n > offered; n-- {
			again := w.req
			again.Shape, _ = capacity.Layout{}.Shape(n, 8)
			better := admission.Decide(again, w.view)
			require.False(t, better.Accepted() && len(better.Displaced)+len(better.Moves) == 0,
				"%d GPUs would do, %d were offered", n, offered)
		}
	})
}

// Whole data centres are asked for by mistake, and under a lock.
func TestHugeRequestsAreAnsweredSoon(t *testing.T) {
	t.Parallel()
	v := emptyView()
	v.Pool.PerNode, v.Pool.MaxNodes = 8, 20_000
	v.Slots = calendar.NewSlots(v.Pool.MaxNodes, v.Pool.PerNode)
	v.Limits.GPUs = 200_000
	for i := range 2_000 {
		slots := make([]int, 9)
		for j := range slots {
			slots[j] = 9*i + j
		}
		v.Slots.Force(calendar.Booking{ID: fmt.Sprint("b", i), Interval: hoursAhead(i%20, i%20+5), Slots: slots,
			GPUs: 8})
	}
	for _, n := range []int{99_991, 100_000, 159_999, 1_000_000} {
		shape, ok := capacity.Layout{}.Shape(n, 8)
		require.True(t, ok)
		d := admission.Decide(admission.Request{Class: reservation.Guaranteed, Shape: shape,
			Window: hoursAhead(0, 24)}, v)
		require.False(t, d.Accepted())
		require.Positive(t, d.Cost)
		require.NotEmpty(t, d.Offers)
	}
}
