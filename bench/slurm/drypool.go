package main

import (
	"cmp"
	"slices"
)

// dryJob is one piece of work that is submitted.
type dryJob struct {
	submit, length int64
	nodes, gpus    int // GPUs on each node
	number         int // in the order of submissions
}

// drySettings are a cluster and the timers of those who keep its nodes warm.
type drySettings struct {
	count, perNode int   // nodes, and GPUs of each
	boot           int64 // from when a node is asked for until it has booted
	launch         int64 // from then until a job begins that waited for it
	suspend        int64 // a node that nothing ran on for so long loses power
	idleRelease    int64 // a node that was kept for a promise is kept for so long after it
}

// dryPower is what a node has.
type dryPower int

const (
	off dryPower = iota
	booting
	up
)

// dryNode is one node of the cluster.
type dryNode struct {
	power dryPower
	ready int64 // when it has booted
	free  int   // GPUs
	jobs  int   // on it, those included that wait for its boot
	used  int64 // when something ran on it last, a heartbeat included
	// kept is whether it is in keeping; idleSince is from when that is for no promise.
	kept      bool
	promise   *dryPromise
	idleSince int64
}

// dryPromise is of one whole idle node.
type dryPromise struct {
	start, end int64
	node       int // -1: none yet
}

// dryRun is a job that was given nodes.
type dryRun struct {
	dryJob
	on         []int
	begin, end int64
}

// dryPool is the cluster at a moment.
type dryPool struct {
	drySettings
	now      int64
	nodes    []dryNode
	queue    []dryJob
	running  []*dryRun
	promises []*dryPromise

	waits           []int64
	powered, worked int64
	claims          int
}

// newDryPool has all nodes without power.
func newDryPool(s drySettings) *dryPool {
	p := &dryPool{drySettings: s, nodes: make([]dryNode, s.count)}
	for i := range p.nodes {
		p.nodes[i].free = s.perNode
	}
	return p
}

// advance lets a second pass, and returns the jobs that ended at its end.
func (p *dryPool) advance() (ended []dryJob) {
	p.countSecond()
	p.now++
	p.running = slices.DeleteFunc(p.running, func(j *dryRun) bool {
		if j.end > p.now {
			return false
		}
		for _, i := range j.on {
			n := &p.nodes[i]
			n.free += j.gpus
			n.jobs--
			n.used, n.idleSince = p.now, p.now
		}
		ended = append(ended, j.dryJob)
		return true
	})
	for i := range p.nodes {
		p.nodes[i].live(p)
	}
	p.schedule()
	return ended
}

// live boots, beats and suspends one node.
func (n *dryNode) live(p *dryPool) {
	if n.power == booting && p.now >= n.ready {
		n.power, n.used, n.idleSince = up, p.now, p.now
	}
	if n.kept && n.promise == nil && n.jobs == 0 && n.power == up && p.now-n.idleSince >= p.idleRelease {
		n.kept = false
	}
	if n.power != up || n.jobs > 0 {
		return
	}
	if n.kept && p.now-n.used >= p.suspend/3 {
		n.used = p.now
	}
	if p.now-n.used >= p.suspend {
		n.power, n.kept = off, false
	}
}

// countSecond adds the second that begins now to the time with power, and to that with work.
func (p *dryPool) countSecond() {
	working := make([]bool, len(p.nodes))
	for _, j := range p.running {
		if j.begin <= p.now {
			for _, i := range j.on {
				working[i] = true
			}
		}
	}
	for i, n := range p.nodes {
		if n.power != off {
			p.powered++
		}
		if working[i] {
			p.worked++
		}
	}
}

// submit adds a job to the queue.
func (p *dryPool) submit(j dryJob) { p.queue = append(p.queue, j) }

// schedule gives nodes to what waits, in its order, as far as there are any.
func (p *dryPool) schedule() {
	p.queue = slices.DeleteFunc(p.queue, func(j dryJob) bool {
		on := p.choose(j)
		if on == nil {
			return false
		}
		p.start(j, on)
		return true
	})
}

// choose returns the nodes that the job gets: those that are up first, then those that
// boot, in the order of their names.
func (p *dryPool) choose(j dryJob) []int {
	var able []int
	for i, n := range p.nodes {
		if n.free >= j.gpus {
			able = append(able, i)
		}
	}
	if len(able) < j.nodes {
		return nil
	}
	slices.SortStableFunc(able, func(a, b int) int { return -cmp.Compare(p.nodes[a].power, p.nodes[b].power) })
	return able[:j.nodes]
}

// start gives the job its nodes, and boots those that are off. Work that finds all of them
// kept claims a promise for each that nobody else is on.
func (p *dryPool) start(j dryJob, on []int) {
	begin, warm, alone := p.now, true, 0
	for _, i := range on {
		n := &p.nodes[i]
		if n.power == off {
			p.powerUp(n)
		}
		if n.power == booting {
			begin = max(begin, n.ready+p.launch)
		}
		warm = warm && n.power == up && n.kept
		if n.jobs == 0 {
			alone++
		}
		n.free -= j.gpus
		n.jobs++
	}
	p.waits = append(p.waits, begin-j.submit)
	p.running = append(p.running, &dryRun{dryJob: j, on: on, begin: begin, end: begin + j.length})
	if warm {
		p.claim(alone, on)
	}
	for _, i := range on { // other work has taken it: the promise goes elsewhere
		if q := p.nodes[i].promise; q != nil {
			q.node, p.nodes[i].promise = -1, nil
		}
	}
	p.placePromises()
}

func (p *dryPool) powerUp(n *dryNode) { n.power, n.ready = booting, p.now+p.boot }

// claim ends as many promises that are due as work took nodes.
func (p *dryPool) claim(count int, on []int) {
	for _, i := range on {
		if q := p.nodes[i].promise; q != nil && count > 0 {
			p.drop(q)
			count--
			p.claims++
		}
	}
	for _, q := range slices.Clone(p.promises) {
		if count > 0 && q.start <= p.now {
			p.drop(q)
			count--
			p.claims++
		}
	}
}

// drop ends a promise; its node is idle from now on.
func (p *dryPool) drop(q *dryPromise) {
	p.promises = slices.DeleteFunc(p.promises, func(o *dryPromise) bool { return o == q })
	if q.node >= 0 {
		n := &p.nodes[q.node]
		n.promise, n.idleSince = nil, p.now
	}
}

// dryWindow is a number of nodes that are to be warm for a time.
type dryWindow struct {
	start, end int64
	nodes      int
}

// demand makes the promises what the windows say.
func (p *dryPool) demand(windows []dryWindow) {
	old := p.promises
	p.promises = nil
	for _, w := range windows {
		for range w.nodes {
			i := slices.IndexFunc(old, func(q *dryPromise) bool {
				return q.start < w.end && w.start < q.end && w.start >= q.start
			})
			if i >= 0 {
				old[i].end = w.end
				p.promises = append(p.promises, old[i])
				old = slices.Delete(old, i, i+1)
				continue
			}
			p.promises = append(p.promises, &dryPromise{start: w.start, end: w.end, node: -1})
		}
	}
	for _, q := range old {
		p.drop(q)
	}
	p.placePromises()
}

// expirePromises ends those that nobody came for.
func (p *dryPool) expirePromises() {
	for _, q := range slices.Clone(p.promises) {
		if q.end <= p.now {
			p.drop(q)
		}
	}
}

// placePromises gives nodes to the promises that have none, as far as there are any.
func (p *dryPool) placePromises() {
	for _, q := range p.promises {
		if q.node >= 0 {
			continue
		}
		best := p.bestNode()
		if best < 0 {
			return
		}
		n := &p.nodes[best]
		if n.power == off {
			p.powerUp(n)
		}
		n.kept, n.promise, q.node = true, q, best
	}
}

// bestNode is the node for one more promise: one in keeping for nobody, else one that is
// up and idle, one that boots, or one that is off; -1 for none.
func (p *dryPool) bestNode() int {
	best, rank := -1, 0
	for i, n := range p.nodes {
		if n.promise != nil || n.jobs > 0 {
			continue
		}
		r := 1 + int(n.power)
		if n.kept && n.power != off {
			r += 3
		}
		if r > rank {
			best, rank = i, r
		}
	}
	return best
}
