package scheduler

import "github.com/forewarm/forewarm/core/queue"

// noteOverdue remembers the first of a line if it has waited for too long.
func (c *cycle) noteOverdue(w *waiter) {
	if due, overdue := c.s.due(&w.Job, w.line, c.now); overdue {
		c.late += w.Request.GPUs()
		if w.promise == nil {
			c.overdue.push(place{queue.Key{Major: overdueMajor, Minor: due}, w, nil})
		}
	}
}

// keyOfPromised is where somebody stands in the order who is promised a start: an overdue
// job before all others.
func (c *cycle) keyOfPromised(w *waiter) queue.Key {
	if due, overdue := c.s.due(&w.Job, w.line, c.now); overdue {
		return queue.Key{Major: overdueMajor, Minor: due}
	}
	return c.s.keyOf(&w.Job, w.line, c.now)
}

// crowdShare is the part of the GPUs that overdue jobs may ask for before they count as a
// crowd: one in four.
const crowdShare = 4

// isCrowded reports whether so much is overdue that it makes no difference any more: all
// wait for long, and serving them by when they came would make all wait longer still.
func (c *cycle) isCrowded() bool { return c.late > c.s.gpus/crowdShare }

// serveOverdue looks at those who have waited for too long before all others, in the
// order in which they should have been served, as long as promises are left: who cannot
// start takes one. In a crowd only one is promised a start at a time, and the others go
// on by their ratio. So the longest wait ends, one after the other.
func (c *cycle) serveOverdue() {
	if c.isCrowded() {
		c.room -= max(c.s.policy.Promises-1, 0)
	}
	c.isOverdue = true
	for c.room > 0 && len(c.overdue) > 0 {
		w := c.overdue.pop().job
		if c.isOverLimit(w) || c.start(w) {
			continue
		}
		if _, refused := c.refused[w.line.pile]; !refused {
			c.refuse(w)
		}
		if !c.refused[w.line.pile].Forever() {
			c.promise(w)
		}
	}
	c.isOverdue = false
}
