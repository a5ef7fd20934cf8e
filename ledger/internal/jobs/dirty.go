package jobs

import (
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/placement"
)

// provedSoon is how soon a daemon that is there proves that nothing of a holder is left.
const provedSoon = time.Second

// dirty is what was given back and is not clean yet. The scheduler must know of it: it would try one job after the
// other, and the first that it tries once the GPUs are clean would have them, whose turn it is or not.
func (q queue) dirty() (all []placement.Promised) {
	dirty, _ := learned.Cleaned(q.pool.Pool.Cleaning, q.pool.Pool.Timers.Cleaning, q.now)
	for _, c := range dirty {
		if slices.ContainsFunc(c.Slots, func(slot int) bool { return slot >= q.pool.Pool.MaxNodes }) {
			continue
		}
		until := c.Next(q.pool.Pool.Timers.Cleaning)
		if soon := q.now.Add(provedSoon); len(c.Await) > 0 && q.now.Sub(c.Since) < startsAtLatest || !until.After(q.now) {
			until = soon
		}
		p := placement.Promised{ID: c.Booking().ID, From: q.now, Until: until,
			Company: placement.Company{Tenant: q.left[c.ID]}}
		shape := capacity.Shape{Nodes: len(c.Slots), PerNode: c.GPUs, Short: c.Short}
		for i, slot := range c.Slots {
			p.Spots = append(p.Spots, placementSpot(slot, shape.On(i)))
		}
		all = append(all, p)
	}
	return all
}
