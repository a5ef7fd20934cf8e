package simcluster

import (
	"cmp"
	"slices"
	"time"
)

// advanceTo computes the cluster until the time, event by event. A clock that went back
// changes nothing.
func (c *Cluster) advanceTo(now time.Time) {
	for next, any := c.nextEvent(); any && !next.After(now); next, any = c.nextEvent() {
		c.stepTo(next)
	}
	if now.After(c.at) {
		c.at = now
	}
	c.forgetOld()
}

// nextEvent is when something happens next.
func (c *Cluster) nextEvent() (next time.Time, any bool) {
	consider := func(at time.Time) {
		if !any || at.Before(next) {
			next, any = at, true
		}
	}
	for _, n := range c.nodes {
		if n.Power == powering {
			consider(n.ReadyAt)
		}
		if at, suspends := c.suspendedAt(n); suspends {
			consider(at)
		}
	}
	for _, j := range c.jobs {
		if !j.Started.IsZero() {
			consider(j.Started.Add(j.Length))
		}
	}
	for _, w := range c.config.Work {
		_, at := c.config.nextOccurrence(w, c.at)
		consider(at)
	}
	return next, any
}

// stepTo does all that happens at the time. What ends makes room for what comes, and work
// that comes when an idle node is about to go cold finds it up.
func (c *Cluster) stepTo(at time.Time) {
	before := c.at
	c.at, c.dirty = maxTime(c.at, at), true
	for _, n := range c.nodes {
		if n.Power == powering && !n.ReadyAt.After(c.at) {
			n.Power, n.Active, n.ReadyAt = up, c.at, time.Time{}
		}
	}
	c.endJobs()
	c.submitWork(before, c.at)
	c.scheduleJobs()
	for _, n := range c.nodes {
		if at, suspends := c.suspendedAt(n); suspends && !at.After(c.at) {
			c.suspend(n)
		}
	}
}

// endJobs ends the jobs that have run for their length.
func (c *Cluster) endJobs() {
	c.jobs = slices.DeleteFunc(c.jobs, func(j *job) bool {
		if j.Started.IsZero() || j.Started.Add(j.Length).After(c.at) {
			return false
		}
		c.endJob(j)
		return true
	})
}

func (c *Cluster) endJob(j *job) {
	j.Ended, c.dirty = c.at, true
	c.ended = append(c.ended, j)
	for _, name := range j.On {
		if n := c.findNode(name); n != nil {
			n.takeFrom(j, c.at)
		}
	}
}

// scheduleJobs gives nodes to the jobs that wait, and starts those whose nodes are up. A
// job that finds no place holds up those of its type that came later.
func (c *Cluster) scheduleJobs() {
	full := map[string]bool{}
	for _, j := range c.jobs {
		if len(j.On) == 0 && !full[j.Type] {
			full[j.Type] = !c.placeJob(j)
		}
		if j.Started.IsZero() && c.allUp(j) {
			j.Started, c.dirty = c.at, true
		}
	}
}

// placeJob gives a job its nodes, all of them or none.
func (c *Cluster) placeJob(j *job) bool {
	var fit []*node
	for _, n := range c.nodes {
		if n.fits(j) {
			fit = append(fit, n)
		}
	}
	if len(fit) < j.Nodes {
		return false
	}
	order := []power{up, powering, cold}
	slices.SortStableFunc(fit, func(a, b *node) int {
		return cmp.Compare(slices.Index(order, a.Power), slices.Index(order, b.Power))
	})
	for _, n := range fit[:j.Nodes] {
		c.powerUp(n)
		n.giveTo(j, c.at)
		j.On = append(j.On, n.Name)
	}
	c.dirty = true
	return true
}

// allUp reports whether the job has its nodes and they are up.
func (c *Cluster) allUp(j *job) bool {
	for _, name := range j.On {
		if n := c.findNode(name); n == nil || n.Power != up {
			return false
		}
	}
	return len(j.On) > 0
}

func maxTime(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
