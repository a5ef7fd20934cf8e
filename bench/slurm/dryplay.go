package main

import (
	"slices"

	"github.com/forewarm/forewarm/contract"
)

// dryPolicy decides what is to be warm. It is told of jobs in the order of time.
type dryPolicy interface {
	submit(at int64, number int, j dryJob) error
	end(at int64, number int, j dryJob) error
	decide(at int64, room contract.PoolRoom) ([]dryWindow, error)
}

// dryResult is what a policy came to.
type dryResult struct {
	waits           []int64 // the shortest first
	powered, worked int64   // seconds of nodes
	claims          int
}

// add adds another week.
func (r *dryResult) add(o dryResult) {
	r.waits = append(r.waits, o.waits...)
	slices.Sort(r.waits)
	r.powered, r.worked, r.claims = r.powered+o.powered, r.worked+o.worked, r.claims+o.claims
}

// wait is the mean wait, in seconds of the week.
func (r dryResult) wait() float64 {
	sum := int64(0)
	for _, w := range r.waits {
		sum += w
	}
	return float64(sum) / float64(max(1, len(r.waits)))
}

// overhead is the time with power and without work, in percent of that with work.
func (r dryResult) overhead() float64 {
	return 100 * float64(r.powered-r.worked) / float64(max(1, r.worked))
}

// zeroWait is the percentage of starts that waited no longer than a scheduler's round.
func (r dryResult) zeroWait() float64 {
	zero, _ := slices.BinarySearch(r.waits, 6)
	return 100 * float64(zero) / float64(max(1, len(r.waits)))
}

// dryLooks is how often the policy decides, in seconds.
const dryLooks = 60

// play plays jobs, which are in the order of their submissions, between two seconds. policy
// may be nil.
func play(s drySettings, jobs []dryJob, from, until int64, policy dryPolicy) (dryResult, error) {
	p := newDryPool(s)
	p.now = from - 1
	for next := 0; p.now < until; {
		for _, j := range p.advance() {
			if policy != nil {
				if err := policy.end(p.now, j.number, j); err != nil {
					return dryResult{}, err
				}
			}
		}
		for ; next < len(jobs) && jobs[next].submit <= p.now; next++ {
			jobs[next].number = next
			p.submit(jobs[next])
			if policy != nil {
				if err := policy.submit(p.now, next, jobs[next]); err != nil {
					return dryResult{}, err
				}
			}
		}
		p.schedule()
		if err := p.look(policy); err != nil {
			return dryResult{}, err
		}
	}
	slices.Sort(p.waits)
	return dryResult{p.waits, p.powered, p.worked, p.claims}, nil
}

// look ends promises whose time is over, and has the policy decide if it is time to.
func (p *dryPool) look(policy dryPolicy) error {
	p.expirePromises()
	if policy != nil && p.now%dryLooks == 0 {
		windows, err := policy.decide(p.now, p.room())
		if err != nil {
			return err
		}
		p.demand(windows)
	}
	p.placePromises()
	return nil
}

// room is what a control plane tells of the cluster.
func (p *dryPool) room() contract.PoolRoom {
	free := make([]int, p.perNode+1)
	var room contract.PoolRoom
	for _, n := range p.nodes {
		switch {
		case n.power == up && n.jobs == 0:
			room.IdleNodes++
		case n.power == up:
			free[n.free]++
		}
	}
	for gpus, nodes := range free {
		if gpus > 0 && nodes > 0 {
			room.Shared = append(room.Shared, contract.SharedNodes{FreeGPUs: gpus, Nodes: nodes})
		}
	}
	return room
}
