package plan_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/core/reservation"
)

// newWidePool is a pool of so many nodes whose boots take four minutes.
func newWidePool(t require.TestingT, nodes int) *world {
	w := &world{t: t, now: dawn}
	w.Pool = capacity.Pool{ID: "pool", PerNode: 8, MaxNodes: nodes,
		Timers: capacity.Timers{WarmHold: 15 * time.Minute, IdleRelease: 4 * time.Hour}}
	w.Boot = learned.BootTimes{Prior50: 5 * time.Minute, Prior95: 8 * time.Minute}
	return w
}

func (w *world) readyNodes(n int, idleFor time.Duration) {
	for slot := range n {
		w.addNode([]string{fmt.Sprintf("n%d", slot), fmt.Sprint(slot), "ready"})
		w.Nodes[slot].IdleSince = w.now.Add(-idleFor)
	}
}

func (w *world) addPromise(id string, nodes int, from, to time.Duration) {
	r := reservation.Reservation{ID: id, Shape: capacity.Shape{Nodes: nodes, PerNode: 8}, Class: reservation.Guaranteed,
		Window: calendar.Interval{Start: w.now.Add(from), End: w.now.Add(to)}}
	state := reservation.Waitlisted
	if slots, ok := w.promisedCalendar().Find(r.Shape, r.Window, nil); ok {
		r.Slots, state = slots, reservation.Booked
	}
	r, err := reservation.New(r, state, w.now.Add(-time.Hour))
	require.NoError(w.t, err)
	w.Reservations = append(w.Reservations, r)
}

func (w *world) countKinds() map[plan.Kind]int {
	kinds := map[plan.Kind]int{}
	for _, a := range plan.Compute(w.liveSnapshot(), w.policy, w.now).Actions {
		kinds[a.Kind]++
	}
	return kinds
}

func TestAPoolAsksForNoMoreNodesThanItsCap(t *testing.T) {
	t.Parallel()
	w := newWidePool(t, 40)
	w.addPromise("gang", 40, time.Minute, time.Hour)
	require.Equal(t, 40, w.countKinds()[plan.BootNode], "every slot once")
	w.Supply.Created = w.Supply.Created.Add(85, 10*time.Minute, w.now)
	require.Equal(t, 35, w.countKinds()[plan.BootNode],
		"three for each slot, of which 85 were asked for lately and served nobody")
	w.Supply.Created = w.Supply.Created.Take(slices.Repeat([]time.Time{w.now}, 5), 10*time.Minute, w.now)
	require.Equal(t, 40, w.countKinds()[plan.BootNode], "those that served do not count")
	w.Pool.MaxCreates, w.Pool.CreateWindow = 20, 5*time.Minute
	result := plan.Compute(w.liveSnapshot(), w.policy, w.now)
	require.NotContains(t, w.countKinds(), plan.BootNode)
	require.Len(t, result.Withheld, 40)
	require.Equal(t, []string{plan.HeldCapped}, result.Withheld[0].Codes)
	require.Equal(t, result.Withheld[0].Until, result.Next, "it looks again when there is room")
	seen := w.liveSnapshot()
	until := seen.Capped(w.now)
	require.Equal(t, until, result.Next)
	w.now = until.Add(-time.Second)
	require.NotContains(t, w.countKinds(), plan.BootNode, "not before")
	w.now = until
	require.Equal(t, 20, w.countKinds()[plan.BootNode], "those before are a window ago, and as many may follow")
	require.True(t, (&plan.Snapshot{Pool: w.Pool}).Capped(w.now).IsZero())
}

// The cap is over when its window is, and not later.
func TestACapLastsItsWindow(t *testing.T) {
	t.Parallel()
	w := newWidePool(t, 4)
	w.Pool.MaxCreates, w.Pool.CreateWindow = 1, 2*time.Minute
	w.addPromise("gang", 2, time.Minute, time.Hour)
	w.Supply.Created = w.Supply.Created.Add(1, w.Pool.CreateWindow, w.now)
	w.now = w.now.Add(time.Minute)
	seen := w.liveSnapshot()
	require.Equal(t, w.now.Add(time.Minute), seen.Capped(w.now))
	result := plan.Compute(seen, w.policy, w.now)
	require.Len(t, result.Withheld, 2)
	require.Equal(t, w.now.Add(time.Minute), result.Withheld[0].Until)
	require.Equal(t, w.now.Add(3*time.Minute), result.Withheld[1].Until, "a window after the one before it")
}

// What the cap holds back is told its turn: nothing else happening, each is asked
// for at the time that it was told, in the order of the plan.
func TestEachNodeThatTheCapHoldsBackIsToldItsTurn(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		w := newWidePool(r, rapid.IntRange(1, 8).Draw(r, "slots"))
		w.Pool.MaxCreates = rapid.IntRange(1, 15).Draw(r, "cap")
		w.Pool.CreateWindow = time.Duration(rapid.IntRange(60, 900).Draw(r, "window")) * time.Second
		for range rapid.IntRange(0, 4).Draw(r, "bursts") {
			w.Supply.Created = w.Supply.Created.Add(rapid.IntRange(0, 20).Draw(r, "burst"), w.Pool.CreateWindow, w.now)
			w.now = w.now.Add(time.Duration(rapid.IntRange(0, 600).Draw(r, "later")) * time.Second)
		}
		w.addPromise("gang", w.Pool.MaxNodes, time.Minute, 30*24*time.Hour)
		told := map[int]time.Time{}
		first := plan.Compute(w.liveSnapshot(), w.policy, w.now)
		for _, held := range first.Withheld {
			told[held.Slot] = held.Until
		}
		for len(w.liveSnapshot().Nodes) < w.Pool.MaxNodes {
			before := len(w.Nodes)
			result := w.planUntilSettled(func(plan.Result) {})
			for _, n := range w.Nodes[before:] {
				if until, ok := told[n.Slot]; ok {
					require.WithinDuration(r, until, n.RequestedAt, time.Millisecond, "slot %d",
						n.Slot) // each instant is rounded up
				}
			}
			for _, n := range w.liveSnapshot().Nodes {
				if n.Coming() { // they boot at once, and the cap alone is looked at
					w.makeReady(n.ID)
				}
			}
			require.True(r, result.Next.After(w.now), "%d of %d", len(w.liveSnapshot().Nodes), w.Pool.MaxNodes)
			w.now = result.Next
		}
	})
}

// makeReady brings a node that was just asked for up.
func (w *world) makeReady(id string) {
	switch n := w.nodeOf(id); n.State() {
	case node.Requested:
		w.applyToNode(id, node.Provision, node.Boot, node.BecomeReady)
	case node.Booting:
		w.applyToNode(id, node.BecomeReady)
	}
}

func TestAHalfOpenBreakerLetsOneTry(t *testing.T) {
	t.Parallel()
	w := newWidePool(t, 10)
	w.addPromise("gang", 10, time.Minute, 10*time.Hour)
	for range 5 {
		w.Supply = w.Supply.Failed(w.now, w.now, 3*time.Minute)
	}
	result := plan.Compute(w.liveSnapshot(), w.policy, w.now)
	require.NotContains(t, w.countKinds(), plan.BootNode, "open")
	require.False(t, result.Next.After(w.Supply.BlockedUntil))
	w.now = w.Supply.BlockedUntil
	require.Equal(t, 1, w.countKinds()[plan.BootNode], "half open")
	w.planUntilSettled(func(plan.Result) {})
	require.NotContains(t, w.countKinds(), plan.BootNode, "one is on its way")
	w.applyToNode("n1", node.Provision, node.Boot, node.BecomeReady)
	w.Supply = w.Supply.Ready(w.now)
	require.Equal(t, 9, w.countKinds()[plan.BootNode], "closed")
}

func TestIdleNodesGoATenthAtATime(t *testing.T) {
	t.Parallel()
	w := newWidePool(t, 50)
	w.policy.RemoveFloor, w.policy.RemoveShare = 3, 0.1
	w.readyNodes(50, 5*time.Hour)
	require.Equal(t, 5, w.countKinds()[plan.DrainNode])
	for rounds := 0; len(w.liveSnapshot().Nodes) > 0; rounds++ {
		require.Less(t, rounds, 150, "all go in the end")
		before := w.Supply.Removed.Sum(time.Minute, w.now)
		result := w.planUntilSettled(func(plan.Result) {})
		require.LessOrEqual(t, w.Supply.Removed.Sum(time.Minute, w.now), max(before, 5))
		for _, n := range w.liveSnapshot().Nodes {
			if n.State() == node.Deprovisioning {
				w.applyToNode(n.ID, node.Confirm)
			}
		}
		if w.now = result.Next; result.Next.IsZero() {
			break
		}
	}
	require.Empty(t, w.liveSnapshot().Nodes)
}

func TestAnExpectationReleasesEarlierNeverLater(t *testing.T) {
	t.Parallel()
	seen := func(perHour float64) learned.Arrivals {
		a := learned.Arrivals{}.Observe(nil, dawn.Add(-200*time.Hour))
		for h := -199; h <= 0; h++ {
			at := dawn.Add(time.Duration(h) * time.Hour)
			a = a.Observe([]learned.Start{{At: at.Add(-time.Minute), Nodes: perHour}}, at)
		}
		return a
	}
	for name, c := range map[string]struct {
		arrivals learned.Arrivals
		price    money.MicroUSD
		idle     time.Duration
		released int
	}{
		"nobody comes, but the break-even is far": {seen(0), 20 * money.USD, time.Hour, 0},
		"nobody comes":                     {seen(0), 20 * money.USD, 2 * time.Hour, 2},
		"one comes each hour: one is kept": {seen(1.2), 20 * money.USD, 2 * time.Hour, 0},
		"one comes each half day":          {seen(0.08), 20 * money.USD, 2 * time.Hour, 2},
		"nothing was watched":              {learned.Arrivals{}, 20 * money.USD, 2 * time.Hour, 0},
		"no price":                         {seen(0), 0, 2 * time.Hour, 0},
		"the timer is over, many come":     {seen(50), 20 * money.USD, 4 * time.Hour, 2},
	} {
		w := newWidePool(t, 2)
		w.Pool.Price, w.Arrivals = c.price, c.arrivals
		w.readyNodes(2, c.idle)
		result := plan.Compute(w.liveSnapshot(), w.policy, w.now)
		require.Equal(t, c.released, w.countKinds()[plan.DrainNode], name)
		if c.released == 0 {
			require.False(t, result.Next.IsZero(), name)
			require.False(t, result.Next.After(w.now.Add(4*time.Hour-c.idle)), "%s: the timer is never missed", name)
		}
	}
}

func TestTheWaitlistIsServedByShareAndInOrder(t *testing.T) {
	t.Parallel()
	w := newWidePool(t, 4)
	w.addPromise("holder", 4, time.Hour, 8*time.Hour)
	add := func(id, organization string, class reservation.Class, nodes int, from, to, age time.Duration) {
		r, err := reservation.New(reservation.Reservation{
			ID: id, OrganizationID: organization, Class: class, Shape: capacity.Shape{Nodes: nodes, PerNode: 8},
			Window: calendar.Interval{Start: w.now.Add(from), End: w.now.Add(to)},
		}, reservation.Waitlisted, w.now.Add(-age))
		require.NoError(t, err)
		w.Reservations = append(w.Reservations, r)
	}
	add("greedy", "big", reservation.Guaranteed, 1, time.Hour, 2*time.Hour, 3*time.Hour)
	add("modest", "small", reservation.Guaranteed, 1, time.Hour, 3*time.Hour, time.Hour)
	add("behind", "small", reservation.Guaranteed, 1, 2*time.Hour, 3*time.Hour, time.Minute)
	add("apart", "big", reservation.Guaranteed, 1, 5*time.Hour, 6*time.Hour, time.Minute)
	add("speculative", "small", reservation.Speculative, 1, 6*time.Hour, 7*time.Hour, 9*time.Hour)
	add("huge", "small", reservation.Guaranteed, 5, time.Hour, 8*time.Hour, 9*time.Hour)
	w.Shares = map[string]float64{"big": 0.6, "small": 0.1}
	offered := func() (ids []string) {
		for _, a := range plan.Compute(w.liveSnapshot(), w.policy, w.now).Actions {
			if a.Kind == plan.RetryWaitlisted {
				ids = append(ids, a.Subject)
			}
		}
		return ids
	}
	require.Equal(t, []string{"modest", "apart", "speculative"}, offered(),
		"who waits for the same time waits behind; what can never fit is in nobody's way")
	w.Shares = map[string]float64{"big": 0.1, "small": 0.6}
	require.Equal(t, []string{"greedy", "apart", "speculative"}, offered())
	w.Paused = map[string]time.Time{"small": {}}
	require.Equal(t, []string{"greedy", "apart"}, offered(), "a paused speculative one is not offered")
}

// However many wait, those offered do not overlap, and each that is not waits
// behind one that is before it.
func TestNobodyIsOfferedBeforeAnEarlierOne(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		w := newWidePool(r, 1)
		w.addPromise("holder", 1, 0, 100*time.Hour)
		for i := range rapid.IntRange(0, 12).Draw(r, "waiting") {
			from := time.Duration(rapid.IntRange(0, 40).Draw(r, "from")) * time.Hour
			w.addPromise(fmt.Sprintf("w%02d", i), 1, from,
				from+time.Duration(rapid.IntRange(1, 10).Draw(r, "length"))*time.Hour)
		}
		offered := map[string]bool{}
		for _, a := range plan.Compute(w.liveSnapshot(), w.policy, w.now).Actions {
			offered[a.Subject] = a.Kind == plan.RetryWaitlisted
		}
		for i, x := range w.Reservations {
			if x.State() != reservation.Waitlisted {
				continue
			}
			first := true
			for _, o := range w.Reservations[:i] {
				first = first && (o.State() != reservation.Waitlisted || !o.Window.Overlaps(x.Window))
			}
			require.Equal(r, first, offered[x.ID], "%s of %v", x.ID, w.Reservations)
		}
	})
}

// Whoever waited until inside the lead time was promised nothing before.
func TestAPromotionInsideItsLeadIsNotLate(t *testing.T) {
	t.Parallel()
	w := newWidePool(t, 1)
	r, err := reservation.New(reservation.Reservation{ID: "r", Class: reservation.Guaranteed,
		Shape:  capacity.Shape{Nodes: 1, PerNode: 8},
		Window: calendar.Interval{Start: w.now.Add(time.Minute), End: w.now.Add(time.Hour)}}, reservation.Waitlisted,
		w.now.Add(-5*time.Hour))
	require.NoError(t, err)
	r.Slots = []int{0}
	r, err = r.Apply(reservation.Promote, "test", w.now)
	require.NoError(t, err)
	w.Reservations = []reservation.Reservation{r}
	require.Equal(t, map[plan.Kind]int{plan.WarmReservation: 1, plan.BootNode: 1}, w.countKinds())
}

// A promise on a slot without a node waits on the idle node that is cheapest to
// keep, wherever it is.
func TestAnIdleNodeServesAnotherSlotsPromise(t *testing.T) {
	t.Parallel()
	w := newWidePool(t, 6)
	w.Billing.Step = time.Hour
	w.Pool.Timers.IdleRelease = 10 * time.Minute
	w.readyNodes(5, time.Hour)
	for i := range w.Nodes {
		w.Nodes[i].BootingAt = w.now.Add(-time.Duration(i+1) * 7 * time.Minute) // the first is paid for longest
	}
	r, err := reservation.New(reservation.Reservation{ID: "r", Class: reservation.Guaranteed,
		Shape: capacity.Shape{Nodes: 1, PerNode: 8}, Slots: []int{5},
		Window: calendar.Interval{Start: w.now.Add(12 * time.Minute), End: w.now.Add(time.Hour)}}, reservation.Booked,
		w.now.Add(-time.Hour))
	require.NoError(t, err)
	w.Reservations = []reservation.Reservation{r}
	w.policy.RemoveFloor = 10
	w.planUntilSettled(func(plan.Result) {})
	require.Equal(t, node.Ready, w.nodeOf("n0").State())
	require.Len(t, w.liveSnapshot().Nodes, 5)
	for _, n := range w.liveSnapshot().Nodes[1:] {
		require.Equal(t, node.Deprovisioning, n.State(), n.ID)
	}
	w.now = w.now.Add(4 * time.Minute)
	w.planUntilSettled(func(plan.Result) {})
	require.Equal(t, []int{0}, w.reservationOf("r").Slots)
	require.Equal(t, reservation.Ready, w.reservationOf("r").State())
}

func TestLeadIsTheSlowBootAndAGuard(t *testing.T) {
	t.Parallel()
	b := learned.BootTimes{Prior50: 2 * time.Minute, Prior95: 4 * time.Minute}
	require.Equal(t, 5*time.Minute, plan.Lead(b, plan.Policy{}), "a minute of guard")
	require.Equal(t, 4*time.Minute+time.Second, plan.Lead(b, plan.Policy{Guard: time.Second}))
}
