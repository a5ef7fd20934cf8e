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
	leaving := scheduler.Leaving()
	leaving.Preemption.Grace = 0 // they leave at once
	las := leaving
	las.Order, las.Promises = scheduler.LeastAttained, 0
	return []arm{
		{name: "multifactor", policy: easy(scheduler.Multifactor)},
		{name: "fifo", policy: easy(scheduler.Arrival)},
		{name: "shortest_predicted", policy: easy(scheduler.ShortestPredicted)},
		{name: "oracle", policy: easy(scheduler.ShortestPredicted), oracle: true},
		{name: "least_attained", policy: las, checkpoints: true, preemptible: true},
		{name: "balanced", policy: scheduler.Default()},
		{name: "balanced_leaving", policy: leaving, checkpoints: true, preemptible: true},
		{name: "balanced_losing", policy: leaving, preemptible: true},
	}
}

// restart is what coming back costs, as scheduler.Leaving says.
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
