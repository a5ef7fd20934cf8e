//go:build clouds

package kubernetes

import (
	"time"

	"github.com/forewarm/forewarm/provisioners"
)

// gangBurst is within what time the pods of a gang are made. One that is made later, in
// place of another, finds the others at work: it holds nobody up.
const gangBurst = 10 * time.Second

// holdGangs lets no pod of a gang have started before all have: until then those that
// have their node wait for the others, and use nothing of it. work has the pods in the
// same order.
func holdGangs(pods []podView, queue workloads, work []provisioners.Work) {
	gangs := map[string][]int{}
	for i, p := range pods {
		if name := gangName(p, queue); name != "" {
			gangs[name] = append(gangs[name], i)
		}
	}
	for _, members := range gangs {
		holdGang(firstBurst(pods, members), work)
	}
}

// gangName is what the pods that start together have in common: what they say themselves,
// or the Workload by which Kueue admits them as one.
func gangName(p podView, queue workloads) string {
	if p.group != "" {
		return p.group
	}
	if w := queue.of(p); w != nil {
		return w.key
	}
	return ""
}

// firstBurst are the members that were made together with the first one.
func firstBurst(pods []podView, members []int) (burst []int) {
	first := pods[members[0]].created
	for _, i := range members {
		if pods[i].created.Before(first) {
			first = pods[i].created
		}
	}
	for _, i := range members {
		if pods[i].created.Sub(first) <= gangBurst {
			burst = append(burst, i)
		}
	}
	return burst
}

func holdGang(members []int, work []provisioners.Work) {
	var last time.Time
	waiting := provisioners.Reason("")
	for _, i := range members {
		w := work[i]
		if w.StartedAt.After(last) {
			last = w.StartedAt
		}
		if w.Waiting != "" && waiting != provisioners.WaitBoot {
			waiting = w.Waiting
		}
	}
	for _, i := range members {
		w := &work[i]
		switch {
		case w.StartedAt.IsZero() || !w.EndedAt.IsZero():
		case waiting != "":
			w.StartedAt, w.Waiting = time.Time{}, waiting
		default:
			w.StartedAt = last
		}
	}
}
