package admission_test

import (
	"fmt"
	"time"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/core/reservation"
)

// Somebody wants both nodes of a pool from ten to twelve, and one of them is taken
// until eleven. The refusal names every blocker, and offers what would be accepted. Its
// record can be judged again without the calendar that it was made on.
func ExampleDecide() {
	nine := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	hours := func(from, to int) calendar.Interval {
		return calendar.Interval{Start: nine.Add(time.Duration(from) * time.Hour),
			End: nine.Add(time.Duration(to) * time.Hour)}
	}
	slots := calendar.NewSlots(2, 8)
	if err := slots.Place(calendar.Booking{ID: "res_1", Interval: hours(0, 2), Slots: []int{0}, GPUs: 8}); err != nil {
		fmt.Println(err)
		return
	}
	view := admission.View{
		Now: nine,
		PoolView: admission.PoolView{Slots: slots, Pool: capacity.Pool{Name: "lab", Model: "h100", PerNode: 8,
			MaxNodes: 2, Price: 16 * money.USD, Timers: capacity.Timers{MaxLease: 24 * time.Hour}}},
		Limits:    quota.Limits{GPUs: 12},
		Committed: &quota.Commitments{}, SpeculativeCommitments: &quota.Commitments{},
	}
	request := admission.Request{Class: reservation.Guaranteed, Shape: capacity.Shape{Nodes: 2, PerNode: 8},
		Window: hours(1, 3)}

	record := admission.NewRecord(request, view)
	fmt.Println("accepted:", record.Decision.Accepted())
	for _, blocker := range record.Decision.Reasons {
		fmt.Printf("%s: %s\n", blocker.Code, blocker.Message)
	}
	for _, offer := range record.Decision.Offers {
		fmt.Println("offered:", offer.Shape, "at", offer.Window.Start.Format("15:04"), "for", offer.Cost)
	}
	same, _ := admission.Replay(record)
	fmt.Println("the same when judged again:", same)

	request.Shape = capacity.Shape{Nodes: 1, PerNode: 8}
	accepted := admission.Decide(request, view)
	fmt.Println("one node:", accepted.Accepted(), "on slots", accepted.Slots, "for", accepted.Cost)
	// Output:
	// accepted: false
	// quota_exceeded: the organization may hold 12 GPUs at once; with this it would hold 16
	// capacity_exhausted: pool lab has 8 GPUs free during the whole window; 2×8 has no place
	// offered: 1×8 at 10:00 for $32.00
	// the same when judged again: true
	// one node: true on slots [1] for $32.00
}
