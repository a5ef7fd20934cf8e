package coldstart

import (
	"cmp"
	"slices"
)

// use is a time in which something ran on a node without a break.
type use struct {
	node       string
	start, end int64
	idleSince  int64 // when the node's use before it ended; the begin of the history if none is known
	known      bool  // whether there was one
	jobs       []int // that ran in it, in the order of their starts
	cold       bool  // it began with a boot
	asked      int64 // when the boot began, or the node was wanted
}

// occupancy is the uses of every node, each in order.
type occupancy map[string][]*use

// occupy builds the uses of the jobs that count. Jobs are in the order of their
// starts. A job that still runs is taken to run until the end.
func occupy(jobs []Job, period Period, counts func(Job) bool) occupancy {
	all := occupancy{}
	for i, j := range jobs {
		if !counts(j) {
			continue
		}
		for _, node := range j.Nodes {
			all[node] = extendUses(all[node], node, i, j, period)
		}
	}
	return all
}

// extendUses adds a job, which starts no earlier than those before it.
func extendUses(uses []*use, node string, index int, j Job, period Period) []*use {
	end := endOf(j, period)
	if n := len(uses); n > 0 && uses[n-1].end >= j.Start {
		last := uses[n-1]
		last.end, last.jobs = max(last.end, end), append(last.jobs, index)
		return uses
	}
	u := &use{node: node, start: j.Start, end: end, idleSince: period.Begin, jobs: []int{index}, asked: j.Start}
	if n := len(uses); n > 0 {
		u.idleSince, u.known = uses[n-1].end, true
	}
	return append(uses, u)
}

func endOf(j Job, period Period) int64 {
	if j.End == 0 {
		return max(period.Until, j.Start)
	}
	return j.End
}

// find returns the node's use that holds a second in which a job started on it.
func (o occupancy) find(node string, at int64) *use {
	uses := o[node]
	i, _ := slices.BinarySearchFunc(uses, at, func(u *use, at int64) int { return cmp.Compare(u.start, at+1) })
	return uses[i-1]
}

// nodes returns the names of the nodes, sorted.
func (o occupancy) nodes() []string {
	names := make([]string, 0, len(o))
	for name := range o {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// sortJobs returns the jobs in the order of their starts, each run once. The
// order does not depend on that in which they came.
func sortJobs(jobs []Job) []Job {
	sorted := slices.Clone(jobs)
	slices.SortFunc(sorted, func(a, b Job) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Ready, b.Ready), cmp.Compare(a.ID, b.ID),
			-cmp.Compare(a.End, b.End), -cmp.Compare(a.GPUs, b.GPUs), slices.Compare(a.Nodes, b.Nodes))
	})
	return slices.CompactFunc(sorted, func(a, b Job) bool { return a.ID == b.ID && a.Start == b.Start })
}
