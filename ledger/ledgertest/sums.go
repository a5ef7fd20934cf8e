package ledgertest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/activity"
	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/cost"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
)

// paths lead a new reservation to each of its states.
var paths = []struct {
	from   reservation.State
	events []reservation.Event
}{
	{reservation.Waitlisted, nil},
	{reservation.Booked, nil},
	{reservation.Booked, []reservation.Event{reservation.Warm}},
	{reservation.Booked, []reservation.Event{reservation.Warm, reservation.BecomeReady}},
	{reservation.Booked, []reservation.Event{reservation.Claim}},
	{reservation.Booked, []reservation.Event{reservation.Cancel}},
	{reservation.Booked, []reservation.Event{reservation.Expire}},
	{reservation.Booked, []reservation.Event{reservation.FailWindow}},
}

// randomReservations returns reservations of two organizations in every state, over some
// days around now.
func randomReservations(w *world, rng *rand.Rand, now time.Time) []reservation.Reservation {
	w.Helper()
	var all []reservation.Reservation
	for i := range 120 {
		path := paths[i%len(paths)]
		begin := now.Add(time.Duration(rng.IntN(96)-48) * time.Hour)
		r, err := reservation.New(reservation.Reservation{
			ID: fmt.Sprintf("rsv_%03d", i), OrganizationID: fmt.Sprintf("org_%d", 1+rng.IntN(2)), PoolID: "pol_1",
			Class:  []reservation.Class{reservation.Guaranteed, reservation.Speculative}[rng.IntN(2)],
			Origin: reservation.FromAgent, MadeBy: fmt.Sprintf("key_%d", rng.IntN(3)),
			Window: calendar.Interval{Start: begin, End: begin.Add(time.Duration(1+rng.IntN(9)) * time.Hour)},
			Shape:  capacity.Shape{Nodes: 1 + rng.IntN(3), PerNode: 1 + rng.IntN(4)},
			Cost:   money.MicroUSD(1 + rng.IntN(1_000_000)),
		}, path.from, now)
		require.NoError(w, err)
		all = append(all, applyEvents(w, r, now, path.events...))
	}
	return all
}

// sumByHand adds up what Commitments must say.
func sumByHand(all []reservation.Reservation, held []allocation.Allocation, org string,
	now time.Time) ledger.Commitments {
	var want ledger.Commitments
	month := quota.PerMonth.Start(now)
	for _, r := range all {
		if r.OrganizationID != org {
			continue
		}
		for _, sum := range sumsOf(&want, r.MadeBy, r.UserID, r.Class) {
			switch {
			case r.Placed():
				sum.Add(r.Window, quota.Demand(newPool("pol_1").Pool, r.Shape),
					quota.SpendOf(r.Window, r.Shape.GPUs(), r.Cost))
			case !r.Live() && !r.Window.Start.Before(month):
				sum.Spend(r.Window.Start, quota.Spend{Cost: r.Cost,
					GPUSeconds: gpuSeconds(r.WarmedAt, r.EndedAt, r.Shape)})
			}
		}
	}
	for _, a := range held {
		if a.OrganizationID != org {
			continue
		}
		for _, sum := range sumsOf(&want, a.HeldBy, a.UserID, reservation.Guaranteed) {
			switch price := admission.Cost(newPool("pol_1").Pool, a.Shape, a.Window.Length()); {
			case a.Live():
				sum.Add(a.Window, quota.Demand(newPool("pol_1").Pool, a.Shape),
					quota.SpendOf(a.Window, a.Shape.GPUs(), price))
			case !a.Window.Start.Before(month):
				held := gpuSeconds(a.ActiveAt, a.EndedAt, a.Shape)
				sum.Spend(a.Window.Start, quota.Spend{Cost: (2 * money.USD).For(time.Duration(held) * time.Second),
					GPUSeconds: held})
			}
		}
	}
	return want
}

// gpuSeconds returns the GPU-seconds of a shape that is held for a while.
func gpuSeconds(from, to time.Time, s capacity.Shape) int64 {
	if from.IsZero() {
		return 0
	}
	return int64(to.Sub(from)/time.Second) * int64(s.GPUs())
}

// sumsOf returns the sums that a booking belongs to.
func sumsOf(c *ledger.Commitments, key, user string, class reservation.Class) []*quota.Commitments {
	of := func(m *map[string]*quota.Commitments, id string) *quota.Commitments {
		if *m == nil {
			*m = map[string]*quota.Commitments{}
		}
		if (*m)[id] == nil {
			(*m)[id] = &quota.Commitments{}
		}
		return (*m)[id]
	}
	sums := []*quota.Commitments{&c.All, of(&c.ByKey, key)}
	if user != "" {
		sums = append(sums, of(&c.ByUser, user))
	}
	if class == reservation.Speculative {
		sums = append(sums, &c.Speculative)
	}
	return sums
}

func commitmentsAreTheSum(w *world) {
	n := saveGround(w)
	now := w.now()
	all := randomReservations(w, rand.New(rand.NewPCG(1, 2)), now)
	held := []allocation.Allocation{
		activeAllocation(w, "alc_1", "org_1", n, now, 0, 1), pendingAllocation("alc_2", "org_1", "pol_2", now),
		releasedAllocation(w, activeAllocation(w, "alc_3", "org_1", n, now.Add(-time.Hour), 2), now),
		activeAllocation(w, "alc_4", "org_2", n, now, 3),
	}
	w.mustSave(ledger.Change{Reservations: all, Allocations: held})
	for _, org := range []string{"org_1", "org_2", "org_404"} {
		got := readValue(w, func(r ledger.Reader) (ledger.Commitments, error) { return r.Commitments(org) })
		want := sumByHand(all, held, org, now)
		requireSameSums(w, &want.All, &got.All, now)
		requireSameSums(w, &want.Speculative, &got.Speculative, now)
		sameParts(w, want.ByKey, got.ByKey, now)
		sameParts(w, want.ByUser, got.ByUser, now)
	}
}

// sameParts compares sums by key or by person. A part on which nothing counts may
// be left out.
func sameParts(w *world, want, got map[string]*quota.Commitments, now time.Time) {
	w.Helper()
	nothing := &quota.Commitments{}
	for id, sum := range want {
		requireSameSums(w, sum, cmp.Or(got[id], nothing), now)
	}
	for id, sum := range got {
		requireSameSums(w, cmp.Or(want[id], nothing), sum, now)
	}
}

// requireSameSums compares two sums over some days, hour by hour.
func requireSameSums(w *world, want, got *quota.Commitments, now time.Time) {
	w.Helper()
	for h := -40 * 24; h < 96; h++ {
		at := now.Add(time.Duration(h) * time.Hour)
		require.Equal(w, want.At(at), got.At(at), "held %d h from now", h)
		require.Equal(w, want.On(at), got.On(at), "spent on %s", quota.Day(at))
	}
}

// theReportMatches checks numbers that can be followed by hand. A node of four
// GPUs costs 8 $/h, so a GPU-hour costs 2 $.
//
//	first node:  boots :30, usable 4 h, goes away :30
//	    alc_1 (org_1) 2 GPUs from 1:00 to 3:00, waited 5 s, which is none
//	    alc_2 (org_2) 1 GPU  from 2:00 to 4:00, waited 60 s
//	second node: boots :30 from 5:30 on, then is held whole, still
//	third node:  was refused by the provider
func theReportMatches(w *world) {
	begin := w.now().Add(-10 * time.Hour).Truncate(time.Hour)
	at := func(minutes int) time.Time { return begin.Add(time.Duration(minutes) * time.Minute) }
	w.mustSave(ledger.Change{
		Organizations: []ledger.Organization{newOrganization("org_1"), newOrganization("org_2")},
		Pools:         []ledger.Pool{newPool("pol_1")},
	})
	boots := func(id string, slot, requested, ready int) node.Node {
		n := node.New(id, "pol_1", slot, 1, at(requested))
		n.Offering, n.BilledFrom = poolOffering(), at(requested)
		return applyEvents(w, applyEvents(w, n, at(requested), node.Provision, node.Boot), at(ready), node.BecomeReady)
	}
	first, second := boots("nod_1", 0, 0, 30), boots("nod_2", 1, 330, 360)
	first = applyEvents(w, first, at(270), node.Drain, node.Retire)
	first = applyEvents(w, first, at(300), node.Confirm)
	first.BilledUntil = at(300)
	refused := applyEvents(w, node.New("nod_3", "pol_1", 2, 1, at(0)), at(60), node.Provision, node.Refuse)
	late := activeAllocation(w, "alc_2", "org_2", first, at(120), 2)
	late.RequestedAt = at(119)
	prompt := activeAllocation(w, "alc_1", "org_1", first, at(60), 0, 1)
	prompt.RequestedAt = prompt.RequestedAt.Add(-allocation.ZeroWait)
	w.mustSave(ledger.Change{
		Nodes: []node.Node{first, second, refused},
		Allocations: []allocation.Allocation{
			releasedAllocation(w, prompt, at(180)),
			releasedAllocation(w, late, at(240)),
			activeAllocation(w, "alc_3", "org_1", second, at(360), 0, 1, 2, 3),
			pendingAllocation("alc_4", "org_1", "pol_1", at(100)),
		},
		GPUStretches: []ledger.GPUStretch{{NodeID: "nod_2", Stretch: activity.Stretch{GPU: gpuUUID("nod_2", 0),
			Interval: calendar.Interval{Start: at(300), End: at(420)}, Idle: true}}},
		Presences: []ledger.Presence{{NodeID: "nod_2", SeenAt: at(450),
			Activity: []activity.Open{{GPU: gpuUUID("nod_2", 0), Since: at(420)}}}},
	})
	part := func(minutes int) cost.Part {
		return cost.Part{GPUTime: time.Duration(minutes) * time.Minute, Amount: money.MicroUSD(minutes) * 2 * money.USD / 60}
	}
	report := func(s ledger.Scope, from, to int) ledger.Report {
		got := readValue(w, func(r ledger.Reader) (ledger.Report, error) { return r.Report(s, at(from), at(to)) })
		require.Equal(w, at(from), got.From)
		require.Equal(w, at(to), got.To)
		got.From, got.To = time.Time{}, time.Time{}
		return got
	}
	require.Equal(w, ledger.Report{
		Starts: 3, ZeroWaits: 2, WaitTotal: time.Minute + allocation.ZeroWait, WaitP95: time.Minute,
		BusyCost: (8 + 4 + 16) * money.USD, BusyHours: 4 + 2 + 8,
		IdleCost: 20 * money.USD, IdleHours: 10, BootCost: (8 + 4) * money.USD, BootHours: 4 + 2,
		HeldIdle: part(60), HeldUsed: part(30), HeldUnobserved: part(14*60 - 90),
	}, report(everything, 0, 480))
	require.Equal(w, ledger.Report{
		Starts: 1, WaitTotal: time.Minute, WaitP95: time.Minute,
		BusyCost: 6 * money.USD, BusyHours: 3, IdleCost: 2 * money.USD, IdleHours: 1, HeldUnobserved: part(180),
	}, report(everything, 120, 180), "an hour from the middle")
	require.Equal(w, 1, report(everything, 60, 120).Starts, "what begins at its end is the next period's")
	ever := readValue(w, func(r ledger.Reader) (ledger.Report, error) {
		return r.Report(everything, time.Time{}, at(480))
	})
	require.Equal(w, 3, ever.Starts, "what waits has not started, however long the period")
	require.Equal(w, ledger.Report{Starts: 2, ZeroWaits: 2, WaitTotal: allocation.ZeroWait,
		WaitP95: allocation.ZeroWait, BusyCost: 24 * money.USD, BusyHours: 12,
		HeldIdle: part(60), HeldUsed: part(30), HeldUnobserved: part(12*60 - 90)},
		report(ledger.Scope{OrganizationID: "org_1"}, 0, 480))
	require.Equal(w, ledger.Report{
		Starts: 1, WaitTotal: time.Minute, WaitP95: time.Minute, BusyCost: 4 * money.USD, BusyHours: 2,
		HeldUnobserved: part(120),
	}, report(ledger.Scope{OrganizationID: "org_2"}, 0, 480))
}

// theReportAddsUpToCosts has an instance billed for a minimum of an hour that lived
// for half of it, and an orphan: the total is one number, however it is divided.
func theReportAddsUpToCosts(w *world) {
	begin := w.now().Add(-10 * time.Hour).Truncate(time.Hour)
	at := func(minutes int) time.Time { return begin.Add(time.Duration(minutes) * time.Minute) }
	w.mustSave(ledger.Change{Organizations: []ledger.Organization{newOrganization("org_1")},
		Pools: []ledger.Pool{newPool("pol_1")}})
	n := readyNode(w, "nod_1", "pol_1", 0, at(10).Add(30*time.Second))
	n.Offering.MinBilling = time.Hour
	n.BilledFrom, n.BilledUntil = at(0), at(30)
	n = applyEvents(w, applyEvents(w, n, at(25), node.Drain, node.Retire), at(30), node.Confirm)
	held := releasedAllocation(w, activeAllocation(w, "alc_1", "org_1", n, at(15), 0, 1, 2, 3), at(21))
	w.mustSave(ledger.Change{
		Nodes:       []node.Node{n},
		Allocations: []allocation.Allocation{held},
		Orphans: []ledger.Orphan{{Machine: "i-1", GPUs: 4, Source: poolOffering(), BilledFrom: at(0),
			BilledUntil: at(60)}},
	})
	got := readValue(w, func(r ledger.Reader) (ledger.Report, error) { return r.Report(everything, at(-60), at(120)) })
	costs := readValue(w, func(r ledger.Reader) (ledger.Costs, error) { return r.Costs(everything, at(-60), at(120)) })
	cents := func(minutes int) money.MicroUSD { return money.MicroUSD(minutes) * 8 * money.USD / 60 }
	require.Equal(w, []money.MicroUSD{cents(6), cents(9), cents(15), cents(30), 8 * money.USD},
		[]money.MicroUSD{got.BusyCost, got.IdleCost, got.BootCost, got.MinBillingCost, got.OrphanCost})
	require.Equal(w, costs.Total(), got.Spent())
	require.Equal(w, 16*money.USD, got.Spent(), "two machines were billed for an hour")
	require.Equal(w, 16*money.USD-cents(6), got.IdleWaste())
}

func aReportOfNothing(w *world) {
	now := w.now()
	for _, span := range []time.Duration{time.Hour, 0, -time.Hour} {
		to := now.Add(span)
		got := readValue(w, func(r ledger.Reader) (ledger.Report, error) { return r.Report(everything, now, to) })
		require.Equal(w, ledger.Report{From: now, To: to}, got)
	}
}
