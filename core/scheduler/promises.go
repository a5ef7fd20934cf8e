package scheduler

import (
	"maps"
	"slices"
)

// reviewPromises takes back promises that cannot be kept, and, with EASY backfill, those
// that are made anew in each cycle.
func (c *cycle) reviewPromises() {
	c.room = c.s.policy.Promises
	for _, is := range c.s.claims {
		if is.promise != nil && !is.promise.Preempting {
			c.room--
		}
	}
	for _, id := range slices.Sorted(maps.Keys(c.s.promises)) {
		p := c.s.promises[id]
		switch {
		case c.isBroken(p):
			c.s.withdraw(id)
			c.out.Broken = append(c.out.Broken, id)
		case c.s.policy.Easy && !p.Preempting:
			c.s.withdraw(id)
		case !p.Preempting:
			c.room--
		}
	}
}

// isBroken reports whether a node of the promise cannot take new work when it begins, or the tenant
// may no longer hold as much.
func (c *cycle) isBroken(p *Promise) bool {
	w := c.s.jobs[p.ID]
	if most := w.line.user.tenant.MostGPU; most > 0 && w.Request.GPUs() > most {
		return true
	}
	for _, spot := range p.Spots {
		if x, _ := c.s.cluster.Condition(spot.Node); x.Drained || x.HotUntil.After(p.From) {
			return true
		}
	}
	return false
}

// promise gives the job the earliest start that delays nobody's. It returns false where
// there is none.
func (c *cycle) promise(w *waiter) bool {
	p, ok := c.s.cluster.Earliest(w.Request, c.now, w.MaxRuntime)
	if !ok {
		return false
	}
	p.ID = w.ID
	c.room--
	c.promiseNew(Promise{Promised: p})
	return true
}

// promiseNew makes a promise, or moves one.
func (c *cycle) promiseNew(p Promise) {
	c.s.keep(&p)
	c.out.Promised = append(c.out.Promised, p)
}

// isOutdated reports whether a promise that the cycle made has been kept, or has moved, within it.
func (c *cycle) isOutdated(made Promise) bool {
	now := c.s.promises[made.ID]
	return now == nil || !now.From.Equal(made.From) || now.Preempting != made.Preempting
}

// servePromised starts a promised job if it can start anywhere, else sees whether it can
// be promised an earlier start, because something ended before it had to.
func (c *cycle) servePromised(turn place) {
	w := turn.job
	if is := (place{c.rankOf(w).Key, w, nil}); turn.before(is) {
		c.all.push(is)
		return
	}
	if c.isOverLimit(w) {
		c.blockLine(w) // it came back from running, or limits have changed
		return
	}
	p := w.promise
	c.s.withdraw(w.ID)
	_, c.isOverdue = c.s.due(standingOf(&w.Job), w.line, c.now)
	started := c.start(w)
	c.isOverdue = false
	if started {
		if !p.Preempting {
			c.room++
		}
		c.reopen()
		return
	}
	isLate := !p.From.After(c.now)
	other, ok := c.s.cluster.Earliest(w.Request, c.now, w.MaxRuntime)
	if ok && !p.Preempting && (other.From.Before(p.From) || isLate && other.From.After(p.From)) {
		other.ID = w.ID
		c.promiseNew(Promise{Promised: other})
		c.reopen()
		return
	}
	c.s.keep(p)
	if p.Preempting {
		c.noteBlocked(w, Preempting)
		return
	}
	c.want(w)
}

// keep puts a promise into effect.
func (s *Scheduler) keep(p *Promise) {
	s.cluster.Promise(p.Promised)
	w := s.jobs[p.ID]
	if w.promise == nil {
		w.line.promised++
		w.line.user.tenant.promised += w.Request.GPUs()
		s.countPromised(w.Group, 1)
	}
	s.promises[p.ID], w.promise = p, p
}

// withdraw takes back the promise of a job, if it has one.
func (s *Scheduler) withdraw(id string) {
	if s.promises[id] != nil {
		s.cluster.Withdraw(id)
		delete(s.promises, id)
		w := s.jobs[id]
		w.line.promised--
		w.line.user.tenant.promised -= w.Request.GPUs()
		s.countPromised(w.Group, -1)
		w.promise = nil
	}
}
