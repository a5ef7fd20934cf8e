package scheduler

import (
	"time"

	"github.com/forewarm/forewarm/core/queue"
)

// rank is where somebody stands in the order, and whether that is because it is overdue.
type rank struct {
	queue.Key
	overdue bool
}

// rankIn is where a job of a line stands: an overdue one before all others of its class
// and of lower ones, and behind those of a higher class, who could wait for ever
// otherwise behind whatever was submitted a day before.
func rankIn(s *Scheduler, j standing, l *line, now time.Time) rank {
	if due, overdue := s.due(j, l, now); overdue {
		return rank{queue.Key{Major: l.major - 1, Minor: due}, true}
	}
	return rank{Key: s.keyOf(j, l, now)}
}

// rankOf is where a job that waits stands now.
func (c *cycle) rankOf(w *waiter) rank { return rankIn(c.s, standingOf(&w.Job), w.line, c.now) }

// noteOverdue remembers the first of a line if it has waited for too long.
func (c *cycle) noteOverdue(l *line) {
	if is := rankIn(c.s, l.stands, l, c.now); is.overdue {
		c.late[l.major] += l.gpus
		if l.first.promise == nil {
			c.overdue.push(place{is.Key, l.first, nil})
		}
	}
}

// isCrowded reports whether so much of a class is overdue that it makes no difference any
// more: all wait for long, and serving them by when they came would make all wait longer
// still.
func (c *cycle) isCrowded(major int64) bool {
	return c.late[major] > int(float64(c.s.accounts.gpus)*c.s.policy.Crowd)
}

// crowdCut is how many promises fewer may be made in a crowd, where only one is made at a
// time.
func (c *cycle) crowdCut(major int64) int {
	if !c.isCrowded(major) {
		return 0
	}
	return max(c.s.policy.Promises-1, 0)
}

// isOverdueNext reports whether it is the turn of somebody who has waited for too long.
func (c *cycle) isOverdueNext() bool {
	return len(c.overdue) > 0 && (len(c.all) == 0 || c.overdue[0].before(c.all[0]))
}

// serveOverdue looks at who has waited for too long, before all others of its class and in
// the order in which they should have been served, as long as promises are left: who
// cannot start takes one. In a crowd only one is promised a start at a time, and the
// others go on by their ratio. So the longest wait ends, one after the other.
func (c *cycle) serveOverdue(w *waiter) {
	if min(c.rooms[w.line.major], c.roomOf(w.line.major)) <= 0 {
		c.unserved = min(c.unserved, w.line.major)
		return
	}
	c.isOverdue = true
	isDone := c.isOverLimit(w) || c.start(w)
	c.isOverdue = false
	if isDone {
		return
	}
	why, refused := c.refused[w.line.pile]
	if !refused {
		why = c.refuse(w)
	}
	if !why.Forever() && c.promise(w) {
		c.all.push(place{c.rankOf(w).Key, w, nil})
	}
}

// countRooms notes how many promises may be made to overdue jobs, before any is kept: whoever is
// behind one that is kept is looked at in the next cycle, and what is free in this one goes to all by
// their turn. Otherwise one overdue job after the other would have GPUs wait for it, at the cost of all.
func (c *cycle) countRooms() {
	for major := range c.late {
		c.rooms[major] = c.roomOf(major)
	}
}

// roomOf is how many promises may be made to the overdue jobs of a class. What a higher
// class is promised takes nothing from it: others of its own class would go past it
// meanwhile.
func (c *cycle) roomOf(major int64) int {
	room := c.s.policy.Promises - c.crowdCut(major)
	for id, p := range c.s.promises {
		if !p.Preempting && c.s.jobs[id].line.major >= major {
			room--
		}
	}
	for _, is := range c.s.claims {
		if is.promise != nil && !is.promise.Preempting && is.major >= major {
			room--
		}
	}
	return room
}

// mostCut is crowdCut where it is largest.
func (c *cycle) mostCut() (most int) {
	for major := range c.late {
		most = max(most, c.crowdCut(major))
	}
	return most
}

// isHeldBack reports whether overdue jobs come first that have no promise yet.
func (c *cycle) isHeldBack(w *waiter) bool { return w.line.major >= c.unserved }
