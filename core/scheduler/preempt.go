package scheduler

import (
	"cmp"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/placement"
	"github.com/forewarm/forewarm/core/queue"
)

// victim is a running job that could be told to leave.
type victim struct {
	*Running
	class int64     // the key of its class
	key   queue.Key // of its place, once it waits again
	again rank      // the same, with whether it then is overdue
	cost  time.Duration
	soon  bool // it is predicted to end within its grace
}

// hope is what decides whether others' leaving could let a job start.
type hope struct {
	signature
	class int64
	rank
}

func (c *cycle) wantsFull() bool {
	return !c.s.policy.Preemption.Enabled || len(c.wants) >= c.s.policy.Preemption.PerCycle
}

// want notes that the job would have others leave for it.
func (c *cycle) want(w *waiter) {
	if !c.s.policy.Classes[w.Class].Patient && !c.wantsFull() && !slices.Contains(c.wants, w) {
		c.wants = append(c.wants, w)
	}
}

// makeRoom tells running jobs to leave for those that want to start, in their order.
func (c *cycle) makeRoom() {
	for _, w := range c.wants {
		// It started after all, or others of its tenant took what was left of the limit.
		if c.s.jobs[w.ID] == nil || c.isOverLimit(w) {
			continue
		}
		h := hope{w.line.pile.signature, w.line.major, rank{Key: c.s.keyOf(standingOf(&w.Job), w.line, c.now)}}
		if w.promise != nil && !c.isCrowded(w.line.major) {
			h.rank = c.rankOf(w)
		}
		if !h.overdue {
			h.Minor = 0 // only the level and the band count
		}
		if !c.hopeless[h] && !c.makeRoomFor(w, h) {
			c.hopeless[h] = true
		}
	}
}

// makeRoomFor plans who leaves for the job, and puts the plan into effect if it lets the
// job start. It returns whether it would.
func (c *cycle) makeRoomFor(j *waiter, h hope) bool {
	leaveBy := c.now.Add(c.s.policy.Preemption.Grace)
	until := leaveBy.Add(j.MaxRuntime)
	own := j.promise
	c.s.withdraw(j.ID)
	leaving, spots := c.fewest(j.Request, c.mayLeaveFor(h), until)
	if spots == nil || !slices.ContainsFunc(leaving, func(v victim) bool { return !v.soon }) {
		if own != nil {
			c.s.keep(own)
		}
		if spots != nil && len(leaving) > 0 {
			c.await(j, leaving)
		}
		return spots != nil
	}
	plan := Plan{For: j.ID, LeaveBy: leaveBy}
	for _, v := range leaving {
		v.Leaving, v.Until = true, leaveBy
		c.s.cluster.EndBy(v.ID, leaveBy)
		plan.Victims = append(plan.Victims, Victim{Job: v.ID, GPUs: v.Request.GPUs(), Cost: v.cost})
	}
	c.out.Plans = append(c.out.Plans, plan)
	c.promiseNew(Promise{Preempting: true,
		Promised: placement.Promised{ID: j.ID, Spots: spots, From: leaveBy, Until: until,
			Company: j.Request.Company}})
	return true
}

func (c *cycle) await(j *waiter, ends []victim) {
	a := Awaited{For: j.ID}
	for _, v := range ends {
		a.Ends = append(a.Ends, v.ID)
	}
	c.out.Awaited = append(c.out.Awaited, a)
}

// mayLeaveFor lists who may be told to leave for a job, the cheapest first: only those
// that stand behind it once they wait again, so that nobody leaves for whom it would leave
// next. For a job that is overdue and promised a start everybody of its class and of lower
// ones leaves who is not overdue for longer.
func (c *cycle) mayLeaveFor(h hope) []victim {
	if c.victims == nil {
		c.listVictims()
	}
	var all []victim
	for _, v := range c.victims {
		if v.isBehind(h) && !v.Leaving {
			all = append(all, v)
		}
	}
	return all
}

// isBehind reports whether the victim, once it waits again, stands behind a job. Who was
// served because it was overdue leaves for nobody of its own class.
func (v victim) isBehind(h hope) bool {
	switch {
	case v.class != h.class:
		return v.class > h.class
	case v.Overdue:
		return false
	case h.overdue && v.again.overdue:
		return v.again.Minor > h.Minor
	}
	return v.key.Major > h.Major
}

func (c *cycle) listVictims() {
	c.victims = []victim{}
	p := c.s.policy.Preemption
	for _, r := range c.s.running {
		if !r.Preemptible || r.Leaving || r.Preemptions >= p.MostTimes || c.now.Sub(r.Started) < p.MinRuntime ||
			r.Checkpoint <= 0 && !p.LoseWork {
			continue
		}
		again := r.Job
		again.Attained += r.kept(c.now)
		l := c.s.lineOf(c.s.classOf(&again), again.Request.GPUs())
		is := standingOf(&again)
		v := victim{Running: r, class: l.major, key: c.s.keyOf(is, l, c.now), again: rankIn(c.s, is, l, c.now),
			soon: r.endsBy(c.now.Add(p.Grace), c.now)}
		if !v.soon {
			v.cost = time.Duration(r.Request.GPUs()) * (r.lost(c.now) + p.Restart)
		}
		c.victims = append(c.victims, v)
	}
	slices.SortFunc(c.victims, func(a, b victim) int {
		return cmp.Or(cmp.Compare(a.cost, b.cost), b.Started.Compare(a.Started), cmp.Compare(a.ID, b.ID))
	})
}

// fewest finds victims of which none can be left out, and where the request fits without
// them; no placement where it does not even without all of them. It leaves everything as
// it was.
func (c *cycle) fewest(r placement.Request, may []victim, until time.Time) ([]victim, placement.Placement) {
	var released []placement.Holding
	defer func() {
		for _, h := range released {
			c.s.cluster.Restore(h)
		}
	}()
	spots, ok := c.s.cluster.Find(r, c.now, until)
	for step := 1; !ok; step *= 2 {
		from := len(released)
		if from == len(may) {
			return nil, nil
		}
		for _, v := range may[from:min(from+step, len(may))] {
			h, _ := c.s.cluster.Release(v.ID)
			released = append(released, h)
		}
		spots, ok = c.s.cluster.Find(r, c.now, until)
	}
	var leaving []victim
	kept := released[:0:0]
	for i := len(released) - 1; i >= 0; i-- {
		c.s.cluster.Restore(released[i])
		if without, fits := c.s.cluster.Find(r, c.now, until); fits {
			spots = without
			continue
		}
		c.s.cluster.Release(released[i].ID)
		leaving, kept = append(leaving, may[i]), append(kept, released[i])
	}
	released = kept
	return leaving, spots
}
