package plan_test

import (
	"slices"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/core/reservation"
)

// givenUp counts the idle nodes at the end of the actions that are given up.
func givenUp(actions []plan.Action) (count int) {
	for _, a := range slices.Backward(actions) {
		if a.Kind != plan.DrainNode {
			break
		}
		count++
	}
	return count
}

// checkDistantPromise adds a promise of some later time to a pool in which nothing is
// left to do now: unless it is to be looked at now, what is to be done stays the same, and
// what was due before is due when it was, or when it is to be looked at.
func (h *history) checkDistantPromise(settled plan.Result) {
	s := h.liveSnapshot()
	start := h.now.Add(h.drawMinutes("distance", 1, 240))
	r := reservation.Reservation{ID: "distant", Shape: h.drawShape(), OrganizationID: "o1",
		Window: calendar.Interval{Start: start, End: start.Add(h.drawMinutes("its window", 1, 120))},
		Class: rapid.SampledFrom([]reservation.Class{reservation.Guaranteed,
			reservation.Speculative}).Draw(h.r, "its class"),
	}
	slots, ok := h.promisedCalendar().Find(r.Shape, r.Window, nil)
	if !ok {
		return
	}
	r.Slots = slots
	r, err := reservation.New(r, reservation.Booked, h.now)
	require.NoError(h.r, err)
	look := plan.LookAt(&r, h.Pool.Timers, plan.KeepAhead(&h.Pool, &h.Learned, h.policy), h.now)
	require.False(h.r, look.Before(h.now))
	if !look.After(h.now) {
		return
	}
	s.Reservations = append(s.Reservations, r)
	with := plan.Compute(s, h.policy, h.now)
	given := givenUp(with.Actions) // what waited for another promise, which has no room there
	before := slices.Concat(with.Actions[:len(with.Actions)-given])
	require.Equal(h.r, slices.Concat(settled.Actions), before, "%s at %s", r.Window, h.now)
	require.Equal(h.r, settled.Withheld, with.Withheld)
	if given > 0 {
		return
	}
	paused := r.Class == reservation.Speculative && len(s.Paused) > 0 // it is looked at once more when that ends
	// An idle node may have waited for another promise, which has no room on it any more: whoever looks at the pool when
	// they wanted to gives it up some minutes late.
	givesUp := slices.ContainsFunc(s.Nodes, func(n node.Node) bool {
		return !n.IdleSince.IsZero() && n.IdleSince.Add(h.Pool.Timers.IdleRelease).Equal(with.Next)
	})
	if with.Next.Before(look) && !with.Next.Equal(settled.Next) && !paused && !givesUp {
		require.False(h.r, with.Next.Before(settled.Next) || settled.Next.IsZero(),
			"it is to be looked at %s, but planned %s, before %s", look, with.Next, settled.Next)
	}
}
