package ledgertest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/cost"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
)

// costsAreDivided checks numbers that can be followed by hand. A node of four
// GPUs costs 8 $/h, so a GPU-hour costs 2 $.
//
//	node:   born 0:00, usable 0:30, retired 4:30, billed until 5:00
//	    alc_1 (org_1) 2 GPUs from 1:00 to 3:00; rsv_1 ready 3:30, nobody came until 4:00;
//	    rsv_2 was never ready, and nobody came until 4:20; rsv_3 is what was left of a reservation that was used
//	orphan: born 2:00, billed until 3:00
func costsAreDivided(w *world) {
	begin := w.now().Add(-10 * time.Hour).Truncate(time.Hour)
	at := func(minutes int) time.Time { return begin.Add(time.Duration(minutes) * time.Minute) }
	w.mustSave(ledger.Change{Organizations: []ledger.Organization{newOrganization("org_1"), newOrganization("org_2")},
		Pools: []ledger.Pool{newPool("pol_1")}})
	n := readyNode(w, "nod_1", "pol_1", 2, at(30).Add(30*time.Second))
	n.BilledFrom, n.BilledUntil = at(0), at(300)
	n = applyEvents(w, n, at(270), node.Drain, node.Retire)
	n = applyEvents(w, n, at(301), node.Confirm)
	missed := bookedReservation(w, "rsv_1", "org_2", "pol_1", at(200))
	missed.Slots, missed.PartOf = []int{1, 2}, ""
	missed = applyEvents(w, missed, at(210), reservation.Warm, reservation.BecomeReady)
	missed = applyEvents(w, missed, at(240), reservation.Expire)
	unready := bookedReservation(w, "rsv_2", "org_2", "pol_1", at(200))
	unready.Slots = []int{1, 2}
	unready = applyEvents(w, applyEvents(w, unready, at(210), reservation.Warm), at(260), reservation.Expire)
	left := bookedReservation(w, "rsv_3", "org_2", "pol_1", at(200))
	left.Slots = []int{1, 2}
	left = applyEvents(w, left, at(200), reservation.Warm, reservation.BecomeReady)
	left = applyEvents(w, left, at(265), reservation.Expire)
	taken := releasedAllocation(w, activeAllocation(w, "alc_1", "org_1", n, at(60), 0, 1), at(180))
	orphan := ledger.Orphan{Machine: "i-1", GPUs: 4, Source: poolOffering(), BilledFrom: at(120), BilledUntil: at(180)}
	w.mustSave(ledger.Change{
		Nodes: []node.Node{n}, Orphans: []ledger.Orphan{orphan},
		Reservations: []reservation.Reservation{missed, unready, left}, Allocations: []allocation.Allocation{taken},
	})
	line := func(payer cost.Payer, organization string, cause cost.Cause, gpuMinutes int) ledger.CostLine {
		l := ledger.CostLine{PoolID: "pol_1", Provisioner: "sim", Machines: 1, Charge: cost.Charge{
			Payer: payer, OrganizationID: organization, Cause: cause, GPUTime: time.Duration(gpuMinutes) * time.Minute,
		}}
		l.Amount = money.MicroUSD(gpuMinutes) * 2 * money.USD / 60
		return l
	}
	stray := line(cost.Orphan, "", "", 240)
	stray.PoolID = ""
	held := line(cost.Tenant, "org_1", "", 240)
	held.Unobserved = cost.Part{GPUTime: held.GPUTime, Amount: held.Amount}
	costs := func(s ledger.Scope, from, to int) []ledger.CostLine {
		return readValue(w, func(r ledger.Reader) (ledger.Costs, error) { return r.Costs(s, at(from), at(to)) }).Lines
	}
	require.Equal(w, []ledger.CostLine{
		stray, held,
		line(cost.WarmPool, "", cost.Boot, 120),
		line(cost.WarmPool, "", cost.EarlyWarm, 60),
		line(cost.WarmPool, "", cost.LateGoing, 120),
		line(cost.WarmPool, "", cost.NoShow, 120),
		line(cost.WarmPool, "", cost.Removal, 120),
		line(cost.WarmPool, "", cost.Unused, 420), // the two GPUs that nobody ever held
	}, costs(everything, -600, 600))
	require.Equal(w, []ledger.CostLine{held}, costs(ledger.Scope{OrganizationID: "org_1"}, -600, 600),
		"a tenant sees its own")
	require.Empty(w, costs(ledger.Scope{}, -600, 600))
	require.Empty(w, costs(everything, 300, 600), "what was over before")
}

// costsOfThePast checks that a report notices what shows later of a machine that is over:
// that nobody came whom it had stood ready for, and who held its GPUs until when.
func costsOfThePast(w *world) {
	begin := w.now().Add(-10 * time.Hour).Truncate(time.Hour)
	at := func(minutes int) time.Time { return begin.Add(time.Duration(minutes) * time.Minute) }
	w.mustSave(ledger.Change{Organizations: []ledger.Organization{newOrganization("org_1")},
		Pools: []ledger.Pool{newPool("pol_1")}})
	over := func(id string, slot int) node.Node {
		n := readyNode(w, id, "pol_1", slot, at(0))
		n.BilledFrom, n.BilledUntil = at(0), at(60)
		return applyEvents(w, applyEvents(w, n, at(60), node.Drain, node.Retire), at(61), node.Confirm)
	}
	first, second := over("nod_1", 1), over("nod_2", 2)
	waited := bookedReservation(w, "rsv_1", "org_1", "pol_1", at(200))
	waited.Slots, waited.PartOf = []int{1, 3}, ""
	waited = applyEvents(w, waited, at(30), reservation.Warm, reservation.BecomeReady)
	taken := activeAllocation(w, "alc_1", "org_1", second, at(0), 0, 1, 2, 3)
	w.mustSave(ledger.Change{Nodes: []node.Node{first, second}, Reservations: []reservation.Reservation{waited},
		Allocations: []allocation.Allocation{taken}})
	times := func() map[cost.Cause]time.Duration {
		found := map[cost.Cause]time.Duration{}
		for _, l := range readValue(w, func(r ledger.Reader) (ledger.Costs, error) {
			return r.Costs(everything, at(-60), at(600))
		}).Lines {
			found[l.Cause] = l.GPUTime
		}
		return found
	}
	require.Equal(w, map[cost.Cause]time.Duration{"": 4 * time.Hour, cost.Unused: 4 * time.Hour}, times())
	waited.Version, taken.Version = 1, 1
	w.mustSave(ledger.Change{Revisions: map[string]int64{"pol_1": 1},
		Reservations: []reservation.Reservation{applyEvents(w, waited, at(90), reservation.Expire)},
		Allocations:  []allocation.Allocation{releasedAllocation(w, taken, at(45))}})
	for range 2 { // the second answer is remembered
		require.Equal(w, map[cost.Cause]time.Duration{"": 3 * time.Hour, cost.LateGoing: time.Hour,
			cost.NoShow: 2 * time.Hour, cost.Unused: 2 * time.Hour}, times())
	}
}

// A provider that does not say when a machine was born is believed once.
func anOrphansBirthStays(w *world) {
	o := ledger.Orphan{Machine: "i-1", GPUs: 4, Source: poolOffering(), BilledFrom: day}
	w.mustSave(ledger.Change{Orphans: []ledger.Orphan{o}})
	later := o
	later.BilledFrom = day.Add(time.Hour)
	w.mustSave(ledger.Change{Orphans: []ledger.Orphan{later}})
	orphans := func(f ledger.OrphanFilter) []ledger.Orphan {
		return readValue(w, func(r ledger.Reader) ([]ledger.Orphan, error) { return r.Orphans(f) })
	}
	require.Equal(w, []ledger.Orphan{o}, orphans(ledger.OrphanFilter{Provisioner: "sim", Billed: true}))
	o.BilledUntil = day.Add(2 * time.Hour)
	w.mustSave(ledger.Change{Orphans: []ledger.Orphan{o}})
	require.Equal(w, []ledger.Orphan{o}, orphans(ledger.OrphanFilter{}))
	require.Empty(w, orphans(ledger.OrphanFilter{Billed: true}))
	require.Empty(w, orphans(ledger.OrphanFilter{Provisioner: "aws"}))
}
