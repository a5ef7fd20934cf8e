package scheduler

import (
	"time"

	"github.com/forewarm/forewarm/core/queue"
)

// cycle is one decision in the making.
type cycle struct {
	s   *Scheduler
	now time.Time
	out Decision
	// refused are the signatures that cannot start. What is free only shrinks while
	// a cycle starts jobs, so a refusal stays true until a promise is kept or moves.
	refused  map[signature]Blocked
	order    []signature // of refused
	stopped  []*Job      // heads of lines that wait because of refused
	untried  int         // promised jobs that are not looked at yet
	room     int         // promises that may be made
	wants    []*Job      // for whom others may have to leave, in order
	victims  []victim    // who could leave, the cheapest first; nil: not computed
	hopeless map[hope]bool
}

// Cycle decides what starts now, what is promised, and who has to leave. The decision
// is in effect when it returns: what it starts is running. A caller that cannot carry
// out a part of it says so by Requeue or Finish.
func (s *Scheduler) Cycle(now time.Time) Decision {
	c := &cycle{s: s, now: now, out: Decision{At: now}, refused: map[signature]Blocked{}, hopeless: map[hope]bool{}}
	s.cluster.Advance(now)
	c.reviewPromises()
	for _, t := range s.tenants {
		s.weigh(t, now)
	}
	c.fillHeads()
	for !c.isOver() {
		id, k, ok := s.heads.Pop()
		if !ok {
			break
		}
		c.serve(s.jobs[id], k)
	}
	c.makeRoom()
	for _, sig := range c.order {
		if b, still := c.refused[sig]; still {
			c.out.Blocked = append(c.out.Blocked, b)
		}
	}
	return c.out
}

// fillHeads puts the head of each line, and whoever is promised a start, in order.
func (c *cycle) fillHeads() {
	c.s.heads.Clear()
	for _, l := range c.s.lines {
		c.push(l.jobs[0])
	}
	for id := range c.s.promises {
		c.push(c.s.jobs[id])
		c.untried++
	}
}

// push puts a job in order, unless it is nil or there already.
func (c *cycle) push(j *Job) {
	if j == nil {
		return
	}
	// The only refusal is of who is there already: promised jobs are from the beginning.
	_ = c.s.heads.Push(j.ID, c.s.keyOf(j, c.s.waiting[j.ID], c.now))
}

// isOver reports whether nobody who is left can start, be promised a start, or have
// others leave for it.
func (c *cycle) isOver() bool {
	return c.untried == 0 && len(c.refused) >= len(c.s.signatures) && c.room <= 0 && c.wantsFull()
}

// serve looks at a job whose turn it is.
func (c *cycle) serve(j *Job, k queue.Key) {
	l := c.s.waiting[j.ID]
	// Jobs of its tenant may have started since it was put in order.
	if is := c.s.keyOf(j, l, c.now); k.Major < is.Major || k.Major == is.Major && k.Minor < is.Minor {
		_ = c.s.heads.Push(j.ID, is)
		return
	}
	promised := c.s.promises[j.ID]
	if promised != nil {
		c.untried--
	}
	_, refused := c.refused[l.signature]
	switch {
	case l.tenant.MostGPU > 0 && l.tenant.held+j.Request.GPUs() > l.tenant.MostGPU:
		c.out.Blocked = append(c.out.Blocked, Blocked{Job: j.ID, Request: j.Request, Limit: j.MaxRuntime,
			Blocker: TenantLimit})
	case promised != nil:
		c.servePromised(j, l, promised)
	case refused:
		c.holdBack(j, l)
	case !c.start(j, l):
		c.refuse(j, l)
		c.holdBack(j, l)
	}
}

// start begins the job if it has a place, and lets the next of its line be looked at.
func (c *cycle) start(j *Job, l *line) bool {
	until := c.now.Add(j.MaxRuntime)
	spots, ok := c.s.cluster.Find(j.Request, c.now, until)
	if !ok {
		return false
	}
	next := l.after(j)
	c.s.leave(j)
	taken := c.s.cluster.Take(j.ID, j.Request, spots, until)
	c.s.running[j.ID] = &Running{Job: *j, Spots: taken, Started: c.now, Until: until}
	c.s.hold(l.tenant, j.Request.GPUs(), c.now)
	c.out.Starts = append(c.out.Starts, Start{Job: j.ID, Spots: taken, Until: until})
	c.push(next)
	return true
}

// refuse notes that nothing with the job's signature can start.
func (c *cycle) refuse(j *Job, l *line) {
	if _, known := c.refused[l.signature]; known {
		return
	}
	why := c.s.cluster.Explain(j.Request)
	c.refused[l.signature] = Blocked{Job: j.ID, Request: j.Request, Limit: j.MaxRuntime,
		Blocker: Blocker(why.Reason), Refusal: why}
	c.order = append(c.order, l.signature)
}

// holdBack decides what a job is given that cannot start: a promise, or room that others
// make, or neither. One that can never start gets nothing, and nobody waits for it.
func (c *cycle) holdBack(j *Job, l *line) {
	if c.refused[l.signature].Forever() {
		c.stopped = append(c.stopped, j)
		return
	}
	c.want(j)
	if c.room > 0 && c.promise(j) {
		c.push(l.after(j))
		return
	}
	c.stopped = append(c.stopped, j)
}

// reopen looks again at what was refused, because a promise was kept or moved.
func (c *cycle) reopen() {
	clear(c.refused)
	clear(c.hopeless)
	c.order = c.order[:0]
	again := c.stopped
	c.stopped = nil
	for _, j := range again {
		c.push(j)
	}
}
