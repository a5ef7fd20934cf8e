package scheduler

import (
	"math"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/placement"
)

// cycle is one decision in the making.
type cycle struct {
	s   *Scheduler
	now time.Time
	out Decision
	all places
	// refused are the piles that cannot start. What is free only shrinks while a cycle
	// starts jobs, so a refusal stays true until a promise is kept or moves.
	refused   map[*pile]Blocked
	order     []*pile       // of refused
	room      int           // promises that may be made
	isOverdue bool          // who is looked at is served because it is overdue
	late      map[int64]int // GPUs that overdue lines of a class ask for, one job of each, by the keys of classes
	overdue   places        // heads of lines that have waited for too long, by class and when that was
	rooms     map[int64]int // promises that overdue jobs of a class may be made in this cycle, by the keys of classes
	unserved  int64         // the highest class of whose overdue jobs some got no promise
	wants     []*waiter     // for whom others may have to leave, in order
	victims   []victim      // who could leave, the cheapest first; nil: not computed
	hopeless  map[hope]bool
	noted     map[*waiter]bool // that are in out.Blocked
}

// Cycle decides what starts now, what is promised, and who has to leave. The decision
// is in effect when it returns: what it starts is running. A caller that cannot carry
// out a part of it says so by Requeue or Finish.
func (s *Scheduler) Cycle(now time.Time) Decision {
	c := &cycle{s: s, now: now, out: Decision{At: now}, refused: map[*pile]Blocked{}, hopeless: map[hope]bool{},
		noted: map[*waiter]bool{}, late: map[int64]int{}, rooms: map[int64]int{}, unserved: math.MaxInt64}
	s.cluster.Advance(now)
	s.wakeLater(now)
	s.accounts.weigh(now)
	c.claimReserved()
	c.reviewPromises()
	for _, p := range s.piles {
		c.rank(p)
		for _, l := range p.lines {
			c.noteOverdue(l)
		}
	}
	c.room -= c.mostCut()
	c.countRooms()
	for id := range s.promises {
		w := s.jobs[id]
		c.all.push(place{c.rankOf(w).Key, w, nil})
	}
	for len(c.all)+len(c.overdue) > 0 {
		if c.isOverdueNext() {
			c.serveOverdue(c.overdue.pop().job)
		} else {
			c.serve(c.all.pop())
		}
	}
	c.makeRoom()
	c.out.Promised = slices.DeleteFunc(c.out.Promised, c.isOutdated)
	c.out.Blocked = slices.DeleteFunc(c.out.Blocked, func(b Blocked) bool { return s.jobs[b.Job] == nil })
	for _, p := range c.order {
		if b, still := c.refused[p]; still {
			c.out.Blocked = append(c.out.Blocked, b)
		}
	}
	return c.out
}

// rank puts the lines of a pile in order, from their first jobs on.
func (c *cycle) rank(p *pile) {
	p.heads = p.heads[:0]
	for _, l := range p.lines {
		l.next = 0
		if w, is := l.front(); w != nil {
			p.heads.push(place{c.s.keyOf(is, l, c.now), w, p})
		}
	}
	c.push(p)
}

// head is the first job of the line that nobody has looked at. Promised jobs stand for
// themselves.
func (l *line) head() *waiter {
	for l.next < len(l.jobs) && l.jobs[l.next].promise != nil {
		l.next++
	}
	if l.next == len(l.jobs) {
		return nil
	}
	return l.jobs[l.next]
}

// front is the head, and where it stands.
func (l *line) front() (*waiter, standing) {
	if l.promised == 0 && l.next == 0 && len(l.jobs) > 0 {
		return l.first, l.stands
	}
	if w := l.head(); w != nil {
		return w, standingOf(&w.Job)
	}
	return nil, standing{}
}

// push puts the best job of a pile in order, if one is left.
func (c *cycle) push(p *pile) {
	if best, found := c.best(p); found {
		c.all.push(best)
	}
}

// best finds the job of a pile whose turn is first. Those that have gone, or fell back
// because jobs of their tenant started, are put right when they come up: nobody's key
// gets better during a cycle.
func (c *cycle) best(p *pile) (place, bool) {
	for len(p.heads) > 0 {
		first := p.heads[0]
		l := first.job.line
		w, is := l.front()
		if w == nil {
			p.heads.pop()
			continue
		}
		now := place{c.s.keyOf(is, l, c.now), w, p}
		if !first.before(now) {
			p.heads[0] = now
			return now, true
		}
		p.heads[0] = now
		p.heads.descend()
	}
	return place{}, false
}

// serve looks at whose turn it is.
func (c *cycle) serve(turn place) {
	if turn.pile == nil {
		c.servePromised(turn)
		return
	}
	// Jobs of its tenant may have started since it was put in order, and then it is not
	// its turn yet: shares only grow.
	now, found := c.best(turn.pile)
	if !found {
		return
	}
	if turn.before(now) {
		c.all.push(now)
		return
	}
	w := now.job
	_, refused := c.refused[turn.pile]
	switch {
	case c.isOverLimit(w):
		c.blockLine(w)
		c.push(turn.pile)
	case !refused && c.start(w):
		c.push(turn.pile)
	default:
		if !refused {
			c.refuse(w)
		}
		c.holdBack(w)
	}
}

// isOverLimit reports whether the job's group is full, or the tenant may not hold the job beside what
// it holds and is promised. A promise has its place within the limit from when it is made, so that only what the
// tenant holds counts against it: two that are over a limit that fell must not block each other.
func (c *cycle) isOverLimit(w *waiter) bool {
	return c.s.isFull(w) || w.isOverTenantLimit()
}

func (w *waiter) isOverTenantLimit() bool {
	t := w.line.user.tenant
	would := t.held + w.Request.GPUs()
	if w.promise == nil {
		would += t.promised
	}
	return t.MostGPU > 0 && would > t.MostGPU
}

// blockLine leaves out the line of a job whose group or tenant may hold no more.
func (c *cycle) blockLine(w *waiter) {
	by := TenantLimit
	if c.s.isFull(w) {
		by = GroupLimit
	}
	c.noteBlocked(w, by)
	w.line.next = len(w.line.jobs)
}

// noteBlocked notes what keeps a job from starting, once however often it is looked at.
func (c *cycle) noteBlocked(w *waiter, by Blocker) {
	if !c.noted[w] {
		c.noted[w] = true
		c.out.Blocked = append(c.out.Blocked, Blocked{Job: w.ID, Request: w.Request, Limit: w.MaxRuntime, Blocker: by})
	}
}

// start begins the job if it has a place.
func (c *cycle) start(w *waiter) bool {
	until := c.now.Add(w.MaxRuntime)
	spots, ok := c.s.cluster.Find(w.Request, c.now, until)
	if !ok {
		return false
	}
	c.begin(w, spots, "")
	return true
}

// begin has a job run on spots that are free, of a reservation that it claims, if any.
func (c *cycle) begin(w *waiter, spots placement.Placement, claims string) {
	until := c.now.Add(w.MaxRuntime)
	c.s.leave(w)
	taken := c.s.cluster.Take(w.ID, w.Request, spots, until)
	c.s.running[w.ID] = &Running{Job: w.Job, Spots: taken, Started: c.now, Until: until,
		Overdue: c.isOverdue}
	c.s.accounts.hold(w.line.user, w.Request.GPUs(), c.now)
	c.s.countHeld(w.Group, 1)
	is := Start{Job: w.ID, Spots: taken, Until: until, Claims: claims}
	c.out.Starts = append(c.out.Starts, is)
	if claims != "" {
		c.s.claims[w.ID] = claim{Start: is}
		c.s.reserved.byID[claims].add(spots, -1)
	}
}

// refuse notes that nothing of the job's pile can start. Others may have to leave for
// this job: it is the first of its pile, so where nobody leaves for it, nobody would for
// those behind it.
func (c *cycle) refuse(w *waiter) Blocked {
	why := c.s.cluster.Explain(w.Request)
	is := Blocked{Job: w.ID, Request: w.Request, Limit: w.MaxRuntime, Blocker: Blocker(why.Reason), Refusal: why}
	c.refused[w.line.pile] = is
	c.order = append(c.order, w.line.pile)
	if !why.Forever() {
		c.want(w)
	}
	return is
}

// holdBack promises a start to a job that cannot start now, as long as promises are left,
// and then looks at those behind it. One that can never start gets nothing, and nobody
// waits for it.
func (c *cycle) holdBack(w *waiter) {
	p := w.line.pile
	if c.room <= 0 || c.isHeldBack(w) || c.refused[p].Forever() || !c.promise(w) {
		return
	}
	w.line.next++
	c.push(p)
}

// reopen looks again at what was refused, and at all promises, because one was kept or moved.
func (c *cycle) reopen() {
	again := slices.Clone(c.order)
	var promised places
	for id := range c.s.promises {
		w := c.s.jobs[id]
		promised.push(place{c.rankOf(w).Key, w, nil})
	}
	for _, x := range c.all {
		if _, refused := c.refused[x.pile]; x.pile != nil && !refused {
			again = append(again, x.pile)
		}
	}
	clear(c.refused)
	clear(c.hopeless)
	c.order, c.all = nil, promised
	for _, p := range again {
		c.rank(p)
	}
}
