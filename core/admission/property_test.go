package admission_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/gpu"
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
	v := view()
	w := world{}
	for i := range rapid.IntRange(0, 18).Draw(t, "bookings") {
		b := calendar.Booking{
			ID: fmt.Sprint("b", i), Interval: drawWindow(t), GPUs: rapid.IntRange(1, 8).Draw(t, "gpus"),
			Slots: rapid.SliceOfNDistinct(rapid.IntRange(0, 3), 1, 4, rapid.ID).Draw(t, "slots"),
		}
		if v.Slots.Place(b) != nil {
			continue
		}
		w.placed = append(w.placed, b)
		if rapid.Bool().Draw(t, "gives way") {
			v.Speculative = append(v.Speculative, admission.Guess{
				Booking: b, Share: float64(rapid.IntRange(0, 2).Draw(t, "share")), Probability: float64(rapid.IntRange(0, 2).Draw(t, "probability")) / 2,
			})
		}
	}
	v.Pool.Paused = rapid.IntRange(0, 9).Draw(t, "paused") == 0
	v.Limits = quota.Limits{GPUs: rapid.IntRange(8, 40).Draw(t, "quota"), SpeculationPerDay: dollars(t, "budget")}
	caps := capped(&v)
	caps.MaxGPUs, caps.MaxPerDay = rapid.IntRange(4, 40).Draw(t, "cap"), dollars(t, "cap money")
	for _, c := range []*quota.Commitments{v.Committed, v.Guessed, v.Key.Spent} {
		for range rapid.IntRange(0, 3).Draw(t, "commitments") {
			c.Add(drawWindow(t), gpus(rapid.IntRange(1, 8).Draw(t, "committed")), usd(dollars(t, "cost")/4))
		}
	}
	if rapid.Bool().Draw(t, "a person's key") {
		v.Key.Caps = nil
	}
	w.view = v
	shape, _ := gpu.ShapeFor(rapid.IntRange(1, 40).Draw(t, "asked"), 8)
	w.req = admission.Request{
		Class: rapid.SampledFrom([]reservation.Class{reservation.Guaranteed, reservation.Speculative}).Draw(t, "class"),
		Shape: shape, Window: drawWindow(t), Now: rapid.Bool().Draw(t, "now"),
	}
	return w
}

func drawWindow(t *rapid.T) calendar.Interval {
	from := rapid.IntRange(-1, 20).Draw(t, "from")
	return hours(from, from+rapid.IntRange(1, 10).Draw(t, "length"))
}

func dollars(t *rapid.T, label string) gpu.MicroUSD {
	return gpu.MicroUSD(rapid.IntRange(0, 400).Draw(t, label)) * gpu.USD
}

// rebuilt is the calendar made again without some of the bookings.
func (w world) rebuilt(without []string) *calendar.Slots {
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

// written shows a view with everything that is hidden in it. The functions and
// pointers of a View are followed by hand.
func written(v admission.View) string {
	return fmt.Sprint(v.Slots, v.Speculative, *v.Committed, *v.Guessed, *v.Key.Spent, v.Limits, v.Key.Caps, v.Pool)
}

func TestAcceptedRequestsHaveTheirPlace(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		before := written(w.view)
		d := admission.Decide(w.req, w.view)
		require.Equal(t, before, written(w.view), "a decision changes nothing")
		require.Equal(t, d, admission.Decide(w.req, w.view), "and is the same again")
		if !d.Accepted() {
			require.Empty(t, d.Slots)
			require.Empty(t, d.Displaced)
			return
		}
		taken := calendar.Booking{ID: "new", Interval: w.req.Window, Slots: d.Slots, GPUs: w.req.Shape.PerNode}
		require.Len(t, d.Slots, w.req.Shape.Nodes)
		require.NoError(t, w.rebuilt(d.DisplacedIDs()).Place(taken))
		require.LessOrEqual(t, int(w.view.Committed.Peak(w.req.Window)[quota.GPUs])+w.req.Shape.GPUs(), w.view.Limits.GPUs)
		w.displacedWell(t, d, taken)
	})
}

// displacedWell checks that only guesses went, only for a promise, only when
// the pool had no room as it was, and none that could have stayed.
func (w world) displacedWell(t *rapid.T, d admission.Decision, taken calendar.Booking) {
	if len(d.Displaced) == 0 {
		return
	}
	require.Equal(t, reservation.Guaranteed, w.req.Class)
	_, roomAlready := w.rebuilt(nil).Find(w.req.Shape, w.req.Window, nil)
	require.False(t, roomAlready)
	guesses := map[string]calendar.Booking{}
	for _, b := range w.view.Speculative {
		guesses[b.ID] = b.Booking
	}
	after := w.rebuilt(d.DisplacedIDs())
	require.NoError(t, after.Place(taken))
	for _, id := range d.DisplacedIDs() {
		require.Contains(t, guesses, id)
		require.Error(t, after.Place(guesses[id]), "%s could have stayed", id)
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
			retry := admission.Decide(again, w.view)
			require.True(t, retry.Accepted(), "%s at %s: %v", o.Shape, o.Window.Start, codes(retry))
			require.Empty(t, retry.Displaced, "an offer pushes nobody out")
			whole, ok := gpu.ShapeFor(o.Shape.GPUs(), w.view.Pool.PerNode)
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
			if o.Window == w.req.Window {
				offered = o.Shape.GPUs()
			}
		}
		for n := w.req.Shape.GPUs() - 1; n > offered; n-- {
			again := w.req
			again.Shape, _ = gpu.ShapeFor(n, 8)
			better := admission.Decide(again, w.view)
			require.False(t, better.Accepted() && len(better.Displaced) == 0, "%d GPUs would do, %d were offered", n, offered)
		}
	})
}

// Whole data centres are asked for by mistake, and under a lock.
func TestHugeRequestsAreAnsweredSoon(t *testing.T) {
	t.Parallel()
	v := view()
	v.Pool.PerNode, v.Pool.MaxNodes = 8, 20_000
	v.Slots = calendar.NewSlots(v.Pool.MaxNodes, v.Pool.PerNode)
	v.Limits.GPUs = 200_000
	for i := range 2_000 {
		slots := make([]int, 9)
		for j := range slots {
			slots[j] = 9*i + j
		}
		v.Slots.Force(calendar.Booking{ID: fmt.Sprint("b", i), Interval: hours(i%20, i%20+5), Slots: slots, GPUs: 8})
	}
	for _, n := range []int{99_991, 100_000, 159_999, 1_000_000} {
		shape, ok := gpu.ShapeFor(n, 8)
		require.True(t, ok)
		d := admission.Decide(admission.Request{Class: reservation.Guaranteed, Shape: shape, Window: hours(0, 24)}, v)
		require.False(t, d.Accepted())
		require.Positive(t, d.Cost)
		require.NotEmpty(t, d.Offers)
	}
}
