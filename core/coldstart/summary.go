package coldstart

import (
	"cmp"
	"slices"
)

// Waits are the waits of some starts, in seconds.
type Waits struct {
	Starts     int
	P50, P90   int64
	Longest    int64
	Seconds    int64
	GPUSeconds int64 // each wait times the job's GPUs

	all []int64
}

func (w *Waits) add(seconds int64, gpus int) {
	w.all = append(w.all, seconds)
	w.Seconds += seconds
	w.GPUSeconds += seconds * int64(gpus)
}

func (w *Waits) close() {
	slices.Sort(w.all)
	w.Starts = len(w.all)
	w.P50, w.P90, w.Longest = rank(w.all, 50), rank(w.all, 90), rank(w.all, 100)
	w.all = nil
}

// Summary says what happened in the period. Every start is in AtOnce, or in one or two of
// the waits: one that waited for a boot and for something else is in both.
type Summary struct {
	Starts int // of GPU jobs, without those in Open
	GPUs   int // that they got, all together
	// AtOnce waited at most five seconds for the cluster.
	AtOnce int
	// Boot is what starts waited for a boot, also those that waited longer for
	// something else.
	Boot Waits
	// Limits, Resources and Priority are what else was waited for, without boots.
	Limits, Resources, Priority Waits
	// Ineligible is what jobs waited before they were eligible: dependencies, begin
	// times and holds. It is in no other number.
	Ineligible Waits
	// Untold is what starts waited of which the history does not cover the nodes for long
	// enough: for a boot, or for priority or something else.
	Untold Waits
	// Refuted are starts that came at once on nodes that should have been down.
	Refuted int
	// Open are jobs whose nodes may still boot. They have not started as far as is known,
	// and count nowhere else.
	Open int
	// Own are runs of Forewarm's own jobs, which count nowhere else.
	Own int
	// Nodes is how many nodes ran GPU jobs, and StaysUp how many of those never
	// power down.
	Nodes, StaysUp int
	BusyNodeHours  float64 // of nodes that may power down, by work of others
}

func (h *history) summarize() Summary {
	var s Summary
	for _, x := range h.starts {
		if j := h.jobs[x.job]; h.period.contains(j.Start) {
			s.count(x, j)
		}
	}
	for _, w := range []*Waits{&s.Boot, &s.Limits, &s.Resources, &s.Priority, &s.Untold, &s.Ineligible} {
		w.close()
	}
	for _, i := range h.open {
		if h.period.contains(h.jobs[i].Start) {
			s.Open++
		}
	}
	for _, j := range h.jobs {
		if j.Own && h.period.contains(j.Start) {
			s.Own++
		}
	}
	h.countNodes(&s)
	return s
}

func (s *Summary) count(x start, j Job) {
	s.Starts++
	s.GPUs += j.GPUs
	switch x.warmth {
	case Cold:
		s.Boot.add(x.boot, j.GPUs)
	case Refuted:
		s.Refuted++
	}
	if x.blocked && j.Ready > j.Submit {
		s.Ineligible.add(j.Ready-j.Submit, j.GPUs)
	}
	switch x.cause {
	case Limits:
		s.Limits.add(x.rest(), j.GPUs)
	case Resources:
		s.Resources.add(x.rest(), j.GPUs)
	case Priority:
		s.Priority.add(x.rest(), j.GPUs)
	case Early:
		s.Untold.add(x.rest(), j.GPUs)
	default:
		if x.warmth != Cold {
			s.AtOnce++
		}
	}
}

// countNodes counts the nodes of GPU jobs, and the time for which others' work
// was on those that may power down.
func (h *history) countNodes(s *Summary) {
	ran := map[string]bool{}
	for _, x := range h.starts {
		if j := h.jobs[x.job]; h.period.contains(j.Start) {
			for _, node := range j.Nodes {
				ran[node] = true
			}
		}
	}
	for node := range ran {
		s.Nodes++
		if h.assume.suspendTime(node) == Never {
			s.StaysUp++
		}
	}
	busy := int64(0)
	for node, uses := range h.demand() {
		if h.assume.suspendTime(node) == Never {
			continue
		}
		for _, u := range uses {
			busy += max(0, min(u.end, h.period.Until)-max(u.start, h.period.From))
		}
	}
	s.BusyNodeHours = float64(busy) / 3600
}

// demand is the occupancy by everything that is not our own, on the nodes that
// ever ran a GPU job: what nodes were needed for.
func (h *history) demand() occupancy {
	gpus := map[string]bool{}
	for _, x := range h.starts {
		for _, node := range h.jobs[x.job].Nodes {
			gpus[node] = true
		}
	}
	all := occupy(h.jobs, h.period, func(j Job) bool { return !j.Own })
	for node := range all {
		if !gpus[node] {
			delete(all, node)
		}
	}
	return all
}

// groups says of every node which others can stand for it: those that share a
// partition and have GPUs of the same model. Its name is that of the partitions.
func (h *history) groups() map[string]string {
	link := map[string]string{} // partition to a partition of the same group
	root := func(p string) string {
		for link[p] != "" && link[p] != p {
			p = link[p]
		}
		return p
	}
	partition, model := map[string]string{}, map[string]string{}
	for _, j := range h.jobs {
		for _, node := range j.Nodes {
			if other, seen := partition[node]; seen {
				a, b := root(other), root(j.Partition)
				link[max(a, b)] = min(a, b)
			} else {
				partition[node] = j.Partition
			}
			model[node] = cmp.Or(model[node], j.Model)
		}
	}
	names := map[string]string{}
	for node, p := range partition {
		names[node] = root(p)
		if model[node] != "" {
			names[node] += " " + model[node]
		}
	}
	return names
}
