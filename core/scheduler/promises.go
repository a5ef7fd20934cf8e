package scheduler

import (
	"maps"
	"slices"
)

// reviewPromises takes back promises that cannot be kept, and, with EASY backfill, those
// that are made anew in each cycle.
func (c *cycle) reviewPromises() {
	c.room = c.s.policy.Promises
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

// isBroken reports whether a node of the promise cannot take new work when it begins.
func (c *cycle) isBroken(p *Promise) bool {
	for _, spot := range p.Spots {
		if x, _ := c.s.cluster.Condition(spot.Node); x.Drained || x.HotUntil.After(p.From) {
			return true
		}
	}
	return false
}

// promise gives the job the earliest start that delays nobody's. It returns false where
// there is none.
func (c *cycle) promise(j *Job) bool {
	p, ok := c.s.cluster.Earliest(j.Request, c.now, j.MaxRuntime)
	if !ok {
		return false
	}
	p.ID = j.ID
	c.room--
	c.keep(Promise{Promised: p})
	return true
}

// keep puts a promise into effect.
func (c *cycle) keep(p Promise) {
	c.s.cluster.Promise(p.Promised)
	c.s.promises[p.ID] = &p
	c.out.Promised = append(c.out.Promised, p)
}

// servePromised starts a promised job if it can start anywhere, else sees whether it can
// be promised an earlier start, because something ended before it had to.
func (c *cycle) servePromised(j *Job, l *line, p *Promise) {
	c.s.withdraw(j.ID)
	if c.start(j, l) {
		if !p.Preempting {
			c.room++
		}
		c.reopen()
		return
	}
	isLate := !p.From.After(c.now) && !p.Preempting
	earlier, ok := c.s.cluster.Earliest(j.Request, c.now, j.MaxRuntime)
	if ok && !p.Preempting && (isLate || earlier.From.Before(p.From)) {
		earlier.ID = j.ID
		c.keep(Promise{Promised: earlier})
		c.reopen()
	} else {
		c.s.cluster.Promise(p.Promised)
		c.s.promises[j.ID] = p
	}
	c.refuse(j, l)
	if p.Preempting {
		b := c.refused[l.signature]
		b.Blocker = Preempting
		c.refused[l.signature] = b
	} else if !c.refused[l.signature].Forever() {
		c.want(j)
	}
	c.push(l.after(j))
}

// withdraw takes back the promise of a job, if it has one.
func (s *Scheduler) withdraw(id string) {
	if s.promises[id] != nil {
		s.cluster.Withdraw(id)
		delete(s.promises, id)
	}
}
