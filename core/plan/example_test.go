package plan_test

import (
	"fmt"
	"time"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/core/reservation"
)

// A pool's nodes boot in five minutes, and one reservation begins at ten. The planner
// says when to look again, and at that moment what to do. Each action comes with the
// facts that it follows from, so that anybody can judge it again.
func ExampleCompute() {
	nine := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	promised, err := reservation.New(reservation.Reservation{
		ID: "res_1", Class: reservation.Guaranteed, Shape: capacity.Shape{Nodes: 1, PerNode: 8}, Slots: []int{0},
		Window: calendar.Interval{Start: nine.Add(time.Hour), End: nine.Add(2 * time.Hour)},
	}, reservation.Booked, nine)
	if err != nil {
		fmt.Println(err)
		return
	}
	pool := plan.Snapshot{
		Pool:         capacity.Pool{ID: "pol_1", Name: "lab", PerNode: 8, MaxNodes: 2},
		Learned:      learned.Learned{Boot: learned.BootTimes{Prior50: 4 * time.Minute, Prior95: 5 * time.Minute}},
		Reservations: []reservation.Reservation{promised},
	}
	policy := plan.Policy{Guard: time.Minute}

	early := plan.Compute(pool, policy, nine)
	fmt.Println(len(early.Actions), "actions; look again at", early.Next.Format("15:04"))

	due := plan.Compute(pool, policy, early.Next)
	for _, action := range due.Actions {
		does, reason := plan.Judge(action.Kind, action.Facts)
		about := action.Subject
		if action.Kind == plan.BootNode {
			about = fmt.Sprint("on slot ", action.Slot)
		}
		fmt.Printf("%s %s: %s %t\n", action.Kind, about, reason, does)
	}
	warm := due.Actions[0].Facts
	fmt.Println("start", warm.Start.Format("15:04"), "less", warm.Lead, "to boot and", warm.Guard, "to be sure")
	// Output:
	// 0 actions; look again at 09:54
	// warm_reservation res_1: lead_time_reached true
	// boot_node on slot 0: pre_warm true
	// start 10:00 less 5m0s to boot and 1m0s to be sure
}
