package main

import (
	"fmt"
	"maps"
	"slices"

	"github.com/forewarm/forewarm/test/chaos/audit"
)

// printReport tells what was done, and the figures.
func (g *game) printReport(rows audit.Rows, v verdict) {
	fmt.Println()
	counts := g.journal.Counts()
	for _, op := range slices.Sorted(maps.Keys(counts)) {
		fmt.Printf("answered: %s %d\n", op, counts[op])
	}
	fmt.Printf("acknowledged effects: %d; requests that were never answered: %d\n", len(g.journal.Entries()),
		g.journal.Unsure())
	struck, faults := g.breaker.Struck(), 0
	for _, kind := range slices.Sorted(maps.Keys(struck)) {
		fmt.Printf("fault: %s %d\n", kind, struck[kind])
		faults += struck[kind]
	}
	for _, p := range g.site.Forewarm() {
		fmt.Printf("%s ended by itself %d times\n", p.Name, p.Deaths())
	}
	fmt.Printf("machines: %d, of which %d stood without an owner, the longest for %.0f s; bill %s USD, costs %s USD\n",
		len(g.site.Bill()), v.ownerless.Machines, v.ownerless.Longest.Seconds(), v.bill.Decimal(),
		v.costs.Decimal())
	fmt.Printf("the statements about rows were checked at %d moments; the ledger has %d reservations, %d "+
		"allocations, %d nodes\n",
		g.samples, len(rows.Reservations), len(rows.Allocations), len(rows.Nodes))
	visits := g.journal.Visits()
	for _, how := range slices.Sorted(maps.Keys(visits)) {
		fmt.Printf("session on a node: %s %d\n", how, visits[how])
	}
	fmt.Printf("marks that were left on nodes: %d\n", v.hands.Marks)
	figure := func(name string, value any, unit string) { fmt.Printf("figure: chaos_%s %v %s\n", name, value, unit) }
	figure("operations", g.journal.Operations(), "operations")
	figure("faults", faults, "faults")
	figure("lost", len(v.lost), "operations")
	figure("doubled", len(v.doubled), "effects")
	figure("orphans", len(v.ownerless.Orphans), "machines")
	figure("orphan_seconds", fmt.Sprintf("%.0f", v.ownerless.Total.Seconds()), "seconds")
	figure("sessions", v.hands.Sessions, "commands")
	figure("handovers", v.hands.HandOvers, "hand-overs")
	figure("shared_gpus", v.hands.Shared, "allocations")
	figure("gpus_in_two_hands", len(v.hands.TwoHands), "count")
	figure("uncleaned_handovers", len(v.hands.Uncleaned), "count")
	figure("jobs", v.jobs.Over, "jobs")
	figure("job_attempts", v.jobs.Attempts, "attempts")
	figure("jobs_lost", len(v.jobs.Lost), "jobs")
	figure("jobs_run_twice", len(v.jobs.RunTwice), "attempts")
	figure("jobs_torn_output", len(v.jobs.Torn), "jobs")
	figure("jobs_misplaced", len(v.jobs.Misplaced), "jobs")
	figure("gangs", v.jobs.Gangs, "jobs")
	figure("gangs_split", len(v.jobs.Split), "attempts")
	figure("preempted", v.jobs.Preempted, "times")
	figure("preempted_wrongly", len(v.jobs.Left), "jobs")
	figure("requeued", v.jobs.Requeued, "requests")
	figure("cancelled", v.jobs.Cancelled, "jobs")
	figure("bill_difference_usd", v.costDifference().Decimal(), "USD")
}
