package main

import (
	"slices"
	"strings"
	"time"

	"github.com/forewarm/forewarm/core/scheduler"
)

// arm is a policy, and what it is told of the jobs.
type arm struct {
	name        string
	policy      scheduler.Policy
	oracle      bool // its predictions are true
	checkpoints bool // jobs keep their work when they have to leave
	preemptible bool // jobs may be told to leave
}

// listArms returns the policies that are compared, the one to compare with first.
func listArms() []arm {
	easy := func(o scheduler.Order) scheduler.Policy {
		p := scheduler.Default()
		p.Order, p.Promises, p.Easy = o, 1, true
		return p
	}
	las := scheduler.Default()
	las.Order, las.Promises, las.Preemption = scheduler.LeastAttained, 0, leaving()
	ours := scheduler.Default()
	leave := ours
	leave.Preemption = leaving()
	return []arm{
		{name: "multifactor", policy: easy(scheduler.Multifactor)},
		{name: "fifo", policy: easy(scheduler.Arrival)},
		{name: "shortest_predicted", policy: easy(scheduler.ShortestPredicted)},
		{name: "oracle", policy: easy(scheduler.ShortestPredicted), oracle: true},
		{name: "least_attained", policy: las, checkpoints: true, preemptible: true},
		{name: "balanced", policy: ours},
		{name: "balanced_leaving", policy: leave, checkpoints: true, preemptible: true},
		{name: "balanced_losing", policy: leave, preemptible: true},
	}
}

// leaving lets jobs leave for others after ten minutes, and pay two minutes for it.
func leaving() scheduler.Preemption {
	return scheduler.Preemption{Enabled: true, MinRuntime: 10 * time.Minute, Restart: restart, PerCycle: 64}
}

const restart = 2 * time.Minute

func findArm(name string) (arm, bool) {
	all := listArms()
	at := slices.IndexFunc(all, func(a arm) bool { return a.name == name })
	if at < 0 {
		return arm{}, false
	}
	return all[at], true
}

func armNames() string {
	var names []string
	for _, a := range listArms() {
		names = append(names, a.name)
	}
	return strings.Join(names, ", ")
}
