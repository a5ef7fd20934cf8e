package scheduler

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/placement"
	"github.com/forewarm/forewarm/core/reservation"
)

// Reserved is what jobs may claim: GPUs that somebody has reserved, whose time has come, and that are not claimed yet.
// A job that does has its turn at once, as nobody else could have them.
type Reserved struct {
	ID    string
	For   reservation.Claimants // whose jobs claim it
	Spots placement.Placement   // how many GPUs are left on which nodes
	Until time.Time             // when its window ends
	// FreeUntil is until when somebody could have the GPUs of a node, because others have booked them after it; by node,
	// without those that nobody has booked.
	FreeUntil map[string]time.Time
}

// clone is the same, with nothing in common.
func (r Reserved) clone() Reserved {
	r.Spots, r.FreeUntil = slices.Clone(r.Spots), maps.Clone(r.FreeUntil)
	return r
}

// claimable is what is left of something reserved.
type claimable struct {
	Reserved
	left int // GPUs
}

// claimants are who may claim something: an organization, a person or a key of it. Other fields are empty.
type claimants = reservation.Submitter

// reserved is what jobs may claim, and who tried in vain.
type reserved struct {
	byID    map[string]*claimable
	by      map[claimants][]*claimable // by who may claim it
	refused map[refusal]time.Duration  // claims that could not be carried out, with the shortest runtime of them
}

func newReserved() reserved {
	return reserved{byID: map[string]*claimable{}, by: map[claimants][]*claimable{}, refused: map[refusal]time.Duration{}}
}

// Reserve adds what jobs may claim. What is there already, or lies on nodes that are not known, is left out.
func (s *Scheduler) Reserve(all ...Reserved) {
	for _, r := range all {
		if s.knows(r.Spots) && s.reserved.byID[r.ID] == nil {
			s.reserved.add(r)
		}
	}
}

func (all *reserved) add(r Reserved) {
	is := &claimable{Reserved: r.clone()}
	for _, spot := range r.Spots {
		is.left += spot.GPUs
	}
	all.byID[r.ID] = is
	for _, who := range claimantsOf(r.For) {
		all.by[who] = append(all.by[who], is)
	}
}

// claimantsOf are those who may claim something, each of whom is enough.
func claimantsOf(c reservation.Claimants) (all []claimants) {
	of := c.Maker.OrganizationID
	switch c.ForJobs {
	case reservation.OrganizationJobs:
		return []claimants{{OrganizationID: of}}
	case reservation.OwnJobs:
		if c.Maker.UserID != "" {
			all = append(all, claimants{OrganizationID: of, UserID: c.Maker.UserID})
		}
		if c.Maker.KeyID != "" {
			all = append(all, claimants{OrganizationID: of, KeyID: c.Maker.KeyID})
		}
	}
	return all
}

func (j *Job) submitter() reservation.Submitter {
	return reservation.Submitter{OrganizationID: j.Tenant, UserID: j.User, KeyID: j.Key}
}

// claimableBy is what a job may claim of which anything is left. What its person and its key both may comes twice.
func (all *reserved) claimableBy(j *Job) iter.Seq[*claimable] {
	return func(yield func(*claimable) bool) {
		as := []claimants{{OrganizationID: j.Tenant}, {OrganizationID: j.Tenant, UserID: j.User},
			{OrganizationID: j.Tenant, KeyID: j.Key}}
		for i, who := range as {
			if i > 0 && who == as[0] { // it has no person, or no key
				continue
			}
			for _, r := range all.by[who] {
				if r.left > 0 && !yield(r) {
					return
				}
			}
		}
	}
}

// mayClaimAny reports whether anything is left that a job may claim.
func (all *reserved) mayClaimAny(j *Job) bool {
	for range all.claimableBy(j) {
		return true
	}
	return false
}

// asks is what decides whether a job can claim something, beside for how long it may run.
type asks struct {
	who     reservation.Submitter
	request placement.Request
}

func (j *Job) asks() asks { return asks{j.submitter(), j.Request} }

// refusal is what could not be claimed by whom.
type refusal struct {
	asks
	reservation string
}

// claim is a start that claims something, and is not known to have been carried out.
type claim struct {
	Start
	promise *Promise // that the job had, whose GPUs are kept until then; nil: none
	major   int64    // of its line
}

// Unclaim takes back that a job claimed a reservation, because that could not be carried out: it waits as before, with
// the promise that it had, and neither it nor others like it claim that one any more. It returns false where it has
// claimed none.
func (s *Scheduler) Unclaim(job string, now time.Time) bool {
	claimed, found := s.claims[job]
	if !found || s.running[job] == nil {
		return false
	}
	j := s.stop(job, now).Job
	s.reserved.refuse(&j, claimed.Claims)
	s.reserved.byID[claimed.Claims].add(claimed.Spots, 1)
	s.waitFrom(j, now)
	if claimed.promise != nil && s.jobs[job] != nil {
		s.keep(claimed.promise)
	}
	return true
}

// refuse notes that a job was refused what it would claim.
func (all *reserved) refuse(j *Job, reservation string) {
	of := refusal{j.asks(), reservation}
	if shortest, known := all.refused[of]; !known || j.MaxRuntime < shortest {
		all.refused[of] = j.MaxRuntime
	}
}

// isRefused reports whether the job, or one like it that may run no longer, was refused what it would claim.
func (all *reserved) isRefused(j *Job, reservation string) bool {
	shortest, refused := all.refused[refusal{j.asks(), reservation}]
	return refused && j.MaxRuntime >= shortest
}

// keepMeanwhile keeps the promise of a job that claims something until that is known to be carried out.
func keepMeanwhile(s *Scheduler, job string, p *Promise, major int64) {
	if p == nil {
		return
	}
	is := s.claims[job]
	is.promise, is.major = p, major
	s.claims[job] = is
	s.cluster.Promise(p.Promised)
}

// dropKept takes back the promises that were kept meanwhile: whoever claimed something has it.
func dropKept(s *Scheduler) {
	for job, is := range s.claims {
		if is.promise != nil {
			s.cluster.Withdraw(job)
			is.promise = nil
			s.claims[job] = is
		}
	}
}

// add changes how many GPUs are left on some of the nodes.
func (r *claimable) add(spots placement.Placement, sign int) {
	for _, spot := range spots {
		for i := range r.Spots {
			if r.Spots[i].Node == spot.Node {
				r.Spots[i].GPUs += sign * spot.GPUs
				r.left += sign * spot.GPUs
			}
		}
	}
}

// claimReserved has jobs claim what is reserved for them, in the order in which it is their turn. None does that its
// group or its tenant's limit keeps from running.
func (c *cycle) claimReserved() {
	dropKept(c.s)
	if len(c.s.reserved.byID) == 0 {
		return
	}
	var order places
	for _, w := range c.s.jobs {
		if c.s.reserved.mayClaimAny(&w.Job) {
			order.push(place{c.rankOf(w).Key, w, nil})
		}
	}
	none := map[asks]time.Duration{} // those who can claim nothing, if they may run for so long: what is left only shrinks
	for len(order) > 0 {
		w := order.pop().job
		if shortest, found := none[w.asks()]; found && w.MaxRuntime >= shortest || c.isOverLimit(w) {
			continue
		}
		p, major := w.promise, w.line.major
		c.s.withdraw(w.ID) // it may be of the same GPUs
		best, found := bestReserved(c.s, w, c.now)
		if found {
			c.begin(w, best.spots, best.ID)
			keepMeanwhile(c.s, w.ID, p, major)
			continue
		}
		none[w.asks()] = w.MaxRuntime
		if p != nil {
			c.s.keep(p)
		}
	}
}

// option is a reservation that a job could claim, and the part of it.
type option struct {
	*claimable
	spots    placement.Placement
	isOthers bool
	isBeyond bool // the job may run longer than the reservation lasts
}

// bestReserved finds which of the reservations a job claims: one of its submitter before a colleague's, one that lasts
// as long as the job may run, that of which the least is left, and the one that ends first.
func bestReserved(s *Scheduler, w *waiter, now time.Time) (best option, found bool) {
	until := now.Add(w.MaxRuntime)
	for r := range s.reserved.claimableBy(&w.Job) {
		is := option{claimable: r, isOthers: !r.For.IsOf(w.submitter()), isBeyond: until.After(r.Until)}
		if found && compareOptions(is, best) >= 0 || r.left < w.Request.GPUs() || !r.Until.After(now) ||
			s.reserved.isRefused(&w.Job, r.ID) {
			continue
		}
		if spots, ok := partOf(s, r, w.Request, now, until); ok {
			is.spots = spots
			best, found = is, true
		}
	}
	return best, found
}

// compareOptions compares those of one job: that of which less is left leaves less.
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
func partOf(s *Scheduler, r *claimable, q placement.Request, now, until time.Time) (placement.Placement, bool) {
	nodes := slices.DeleteFunc(slices.Clone(r.Spots), func(n placement.Spot) bool {
		free, booked := r.FreeUntil[n.Node]
		return booked && free.Before(until)
	})
	slices.SortStableFunc(nodes, func(a, b placement.Spot) int { return cmp.Compare(a.GPUs, b.GPUs) })
	spots := make(placement.Placement, 0, q.Shape.Nodes)
	for i := range q.Shape.Nodes {
		wanted := q.Shape.On(i)
		at := slices.IndexFunc(nodes, func(n placement.Spot) bool {
			part := placement.Spot{Node: n.Node, GPUs: wanted}
			return n.GPUs >= wanted && s.cluster.CanTake(q, placement.Placement{part}, now, until)
		})
		if at < 0 {
			return nil, false
		}
		spots = append(spots, placement.Spot{Node: nodes[at].Node, GPUs: wanted})
		nodes = slices.Delete(nodes, at, at+1)
	}
	return spots, true
}
