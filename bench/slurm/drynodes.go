package main

import (
	"slices"

	"github.com/forewarm/forewarm/agent/history"
	"github.com/forewarm/forewarm/agent/source"
)

// dryPacker turns jobs into uses of whole nodes, as an agent would see them that forecasts nodes:
// a job that finds room beside others wants nothing new, and a node is wanted from when a job
// opens it until nothing is on it.
type dryPacker struct {
	nodes []packedNode
	on    map[int][]int // nodes of a job, by its number
	uses  int
	emit  func(dryUse, bool) error // a use that begins, or is over
}

// dryUse is of nodes that one job opened. Its end is the last of theirs.
type dryUse struct {
	number    int
	from, to  int64
	nodes, up int
}

type packedNode struct {
	free, jobs int
	use        *dryUse
}

// submit puts a job on nodes that have work and room, and opens those that it lacks.
func (p *dryPacker) submit(at int64, number int, j dryJob) error {
	var on []int
	for i, n := range p.nodes {
		if n.jobs > 0 && n.free >= j.gpus && len(on) < j.nodes {
			on = append(on, i)
		}
	}
	var opened *dryUse
	if missing := j.nodes - len(on); missing > 0 {
		p.uses++
		opened = &dryUse{number: p.uses, from: at, nodes: missing, up: missing}
	}
	for len(on) < j.nodes {
		i := slices.IndexFunc(p.nodes, func(n packedNode) bool { return n.use == nil })
		if i < 0 {
			i, p.nodes = len(p.nodes), append(p.nodes, packedNode{})
		}
		p.nodes[i] = packedNode{free: perNode, use: opened}
		on = append(on, i)
	}
	for _, i := range on {
		p.nodes[i].free -= j.gpus
		p.nodes[i].jobs++
	}
	p.on[number] = on
	if opened == nil {
		return nil
	}
	return p.emit(*opened, false)
}

// end takes a job off its nodes.
func (p *dryPacker) end(at int64, number int, j dryJob) error {
	for _, i := range p.on[number] {
		n := &p.nodes[i]
		n.free += j.gpus
		if n.jobs--; n.jobs > 0 {
			continue
		}
		u := n.use
		n.use = nil
		if u.up--; u.up == 0 {
			u.to = at
			if err := p.emit(*u, true); err != nil {
				return err
			}
		}
	}
	delete(p.on, number)
	return nil
}

// pastUses are the weeks before, as uses of nodes.
func pastUses(o options, line timeline) ([]source.Item, error) {
	var jobs []dryJob
	for _, item := range pastRecords(o, line) {
		r := item.Record
		j := dryJob{submit: r.Submitted.Unix(), length: int64(r.Duration.Seconds()), nodes: 1, gpus: r.GPUs}
		if r.GPUs > perNode {
			j.nodes, j.gpus = r.GPUs/perNode, perNode
		}
		jobs = append(jobs, j)
	}
	slices.SortStableFunc(jobs, func(a, b dryJob) int { return int(a.submit - b.submit) })
	var items []source.Item
	p := &dryPacker{on: map[int][]int{}, emit: func(u dryUse, over bool) error {
		if over {
			r := useRecord(u)
			r.ID = "past-" + r.ID
			items = append(items, source.Item{Record: &r})
		}
		return nil
	}}
	var open []int
	for i := range len(jobs) + 1 {
		for len(open) > 0 && (i == len(jobs) || jobs[open[0]].over() <= jobs[i].submit) {
			if err := p.end(jobs[open[0]].over(), open[0], jobs[open[0]]); err != nil {
				return nil, err
			}
			open = open[1:]
		}
		if i < len(jobs) {
			if err := p.submit(jobs[i].submit, i, jobs[i]); err != nil {
				return nil, err
			}
			open = append(open, i)
			slices.SortFunc(open, func(a, b int) int { return int(jobs[a].over() - jobs[b].over()) })
		}
	}
	return items, nil
}

func (j dryJob) over() int64 { return j.submit + j.length }

// useRecord is a use as a row of a history.
func useRecord(u dryUse) history.Record {
	return dryRecord(u.number, u.from, u.to, u.nodes*perNode)
}
