package scheduler

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/placement"
)

// Reserved is what jobs may claim: GPUs that somebody has reserved, whose time has come, and that are not claimed yet.
// A job that does has its turn at once, as nobody else could have them.
type Reserved struct {
	ID        string
	Tenant    string              // whose jobs alone claim it
	User, Key string              // who made it; User is empty for nobody
	Anyone    bool                // all jobs of the tenant claim it; else those of User or Key alone
	Spots     placement.Placement // how many GPUs are left on which nodes
	Until     time.Time           // when its window ends
}

// isOwn reports whether who submitted the job made the reservation.
func (r *Reserved) isOwn(j *Job) bool {
	return r.User != "" && r.User == j.User || r.Key != "" && r.Key == j.Key
}

// serves reports whether it is one that the job claims, as far as that depends on whose both are.
func (r *Reserved) serves(j *Job) bool { return r.Tenant == j.Tenant && (r.Anyone || r.isOwn(j)) }

// Reserve adds what jobs may claim. What lies on nodes that are not known is left out.
func (s *Scheduler) Reserve(all ...Reserved) {
	for _, r := range all {
		if s.knows(r.Spots) {
			r.Spots = slices.Clone(r.Spots)
			s.reserved[r.ID] = &r
		}
	}
}

// Unclaim takes back that a job claimed a reservation, because that could not be carried out: it waits as before, and
// does not claim that one any more. It returns false where it has claimed none.
func (s *Scheduler) Unclaim(job string, now time.Time) bool {
	claimed, found := s.claims[job]
	if !found || s.running[job] == nil {
		return false
	}
	delete(s.claims, job)
	s.refused[pair{job, claimed.Claims}] = true
	s.reserved[claimed.Claims].add(claimed.Spots, 1)
	s.waitFrom(s.stop(job, now).Job, now)
	return true
}

// pair is a job and a reservation.
type pair struct{ job, reservation string }

// add changes how many GPUs are left on some of the nodes.
func (r *Reserved) add(spots placement.Placement, sign int) {
	for _, spot := range spots {
		for i := range r.Spots {
			if r.Spots[i].Node == spot.Node {
				r.Spots[i].GPUs += sign * spot.GPUs
			}
		}
	}
}

// claimReserved has jobs claim what is reserved for them, in the order in which it is their turn. None does that its
// group or its tenant's limit keeps from running.
func (c *cycle) claimReserved() {
	if len(c.s.reserved) == 0 {
		return
	}
	var order places
	for _, w := range c.s.jobs {
		if mayClaimAny(c.s, &w.Job) {
			order.push(place{c.rankOf(w).Key, w, nil})
		}
	}
	for len(order) > 0 {
		w := order.pop().job
		if c.isOverLimit(w) {
			continue
		}
		if best, found := bestReserved(c.s, w, c.now); found {
			c.s.withdraw(w.ID)
			c.begin(w, best.spots, best.ID)
		}
	}
}

func mayClaimAny(s *Scheduler, j *Job) bool {
	for _, r := range s.reserved {
		if r.serves(j) {
			return true
		}
	}
	return false
}

// option is a reservation that a job could claim, and the part of it.
type option struct {
	*Reserved
	spots    placement.Placement
	isOthers bool
	isBeyond bool // the job may run longer than the reservation lasts
	left     int  // GPUs of it that the job leaves
}

// bestReserved finds which of the reservations a job claims: one of its submitter before a colleague's, one that lasts
// as long as the job may run, that of which the least is left, and the one that ends first.
func bestReserved(s *Scheduler, w *waiter, now time.Time) (option, bool) {
	until := now.Add(w.MaxRuntime)
	var all []option
	for _, id := range slices.Sorted(maps.Keys(s.reserved)) {
		r := s.reserved[id]
		if !r.serves(&w.Job) || !r.Until.After(now) || s.refused[pair{w.ID, id}] {
			continue
		}
		if spots, left, ok := partOf(s, r, w.Request, now, until); ok {
			all = append(all, option{r, spots, !r.isOwn(&w.Job), until.After(r.Until), left})
		}
	}
	if len(all) == 0 {
		return option{}, false
	}
	return slices.MinFunc(all, compareOptions), true
}

func compareOptions(a, b option) int {
	return cmp.Or(compareBools(a.isOthers, b.isOthers), compareBools(a.isBeyond, b.isBeyond),
		cmp.Compare(a.left, b.left), a.Until.Compare(b.Until), cmp.Compare(a.ID, b.ID))
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// partOf finds the part of a reservation that a request takes: of its nodes those on which the least is left.
func partOf(s *Scheduler, r *Reserved, q placement.Request, now, until time.Time) (
	spots placement.Placement, left int, ok bool) {
	nodes := slices.Clone(r.Spots)
	slices.SortStableFunc(nodes, func(a, b placement.Spot) int { return cmp.Compare(a.GPUs, b.GPUs) })
	for _, node := range nodes {
		left += node.GPUs
	}
	for i := range q.Shape.Nodes {
		wanted := q.Shape.On(i)
		at := slices.IndexFunc(nodes, func(n placement.Spot) bool {
			part := placement.Spot{Node: n.Node, GPUs: wanted}
			return n.GPUs >= wanted && s.cluster.CanTake(q, placement.Placement{part}, now, until)
		})
		if at < 0 {
			return nil, 0, false
		}
		spots = append(spots, placement.Spot{Node: nodes[at].Node, GPUs: wanted})
		nodes = slices.Delete(nodes, at, at+1)
	}
	return spots, left - q.Shape.GPUs(), true
}
