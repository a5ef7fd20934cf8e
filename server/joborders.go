package server

import (
	"context"
	"maps"
	"slices"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/ledger"
)

// ordersAtOnce is how many orders one look reads.
const ordersAtOnce = 200

// orders are events by which daemons are told something, and where they were read to.
type orders struct {
	kind    string // with which their types begin
	last    int64  // below 0: they are read from now on
	nodesOf func(r ledger.Reader, found []ledger.Event) ([]string, error)
}

func ordersFromNow() []*orders {
	return []*orders{{kind: "job.", last: -1, nodesOf: nodesOfJobs},
		{kind: "allocation.", last: -1, nodesOf: nodesOfEnds}}
}

// askForOrders has daemons that are attached here report as soon as there is a job for them to
// start, or to end, or an allocation whose work is to end: the answer tells them. Others are told within half a minute.
func (s *Server) askForOrders(ctx context.Context) {
	all := ordersFromNow()
	for {
		changed := s.feed.Changed()
		for _, o := range all {
			if err := s.askOnce(ctx, o); err != nil && ctx.Err() == nil {
				s.cfg.Logger.WarnContext(ctx, "looking for what daemons are to do failed; they hear of it when they report",
					"events", o.kind, "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// askOnce asks for what was ordered after an event, or, to begin with, from now on.
func (s *Server) askOnce(ctx context.Context, o *orders) error {
	return s.cfg.Ledger.Store().Read(ctx, func(r ledger.Reader) error {
		if o.last < 0 {
			end, err := r.JournalEnd()
			o.last = end
			return err
		}
		for more := true; more; {
			found, err := r.Events(ledger.Scope{All: true}, ledger.EventFilter{After: o.last, Type: o.kind}, ordersAtOnce)
			if err != nil {
				return err
			}
			nodes, err := o.nodesOf(r, found)
			if err != nil {
				return err
			}
			for _, id := range nodes {
				s.sessions.Ask(id)
			}
			for _, e := range found {
				o.last = e.Seq
			}
			more = len(found) == ordersAtOnce
		}
		return nil
	})
}

// endsWork are the events after which the work of an allocation is to be ended on its nodes.
var endsWork = []string{"allocation." + string(allocation.Released), "allocation." + string(allocation.Expired),
	"allocation." + string(allocation.Failed)}

// nodesOfEnds are nodes on which work of allocations is to be ended. Those of jobs are told of with their jobs.
func nodesOfEnds(r ledger.Reader, found []ledger.Event) (nodes []string, err error) {
	var ids []string
	for _, e := range found {
		if slices.Contains(endsWork, e.Type) {
			ids = append(ids, e.Subject)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	all, err := r.AllocationsByID(ids)
	for _, a := range all {
		if a.JobID == "" {
			nodes = append(nodes, a.Opened...)
		}
	}
	return nodes, err
}

// tellDaemons are the events after which something is to be started, or ended, on nodes, with how
// many there must be: the daemon of the only one has reported a completion itself.
var tellDaemons = map[string]int{ledger.JobOrdered: 1, ledger.JobEnding: 1, ledger.JobPreempting: 1,
	"job." + string(job.Pending): 1, "job." + string(job.Cancelled): 1, "job." + string(job.Failed): 1,
	"job." + string(job.Completed): 2}

// nodesOfJobs are the nodes on whose jobs something happened that tells them.
func nodesOfJobs(r ledger.Reader, found []ledger.Event) (nodes []string, err error) {
	least := map[string]int{} // nodes, by job
	for _, e := range found {
		fewest, tells := tellDaemons[e.Type]
		if e.Reason == ledger.OrderTold || !tells {
			continue
		}
		if least[e.Subject] == 0 || fewest < least[e.Subject] {
			least[e.Subject] = fewest
		}
	}
	if len(least) == 0 {
		return nil, nil
	}
	all, err := r.JobsByID(slices.Sorted(maps.Keys(least)))
	if err != nil {
		return nil, err
	}
	var attempts []ledger.JobAttempt
	for id, j := range all {
		if j.Shape.Nodes >= least[id] {
			attempts = append(attempts, ledger.JobAttempt{JobID: id, Attempt: j.Attempt})
		}
	}
	ranks, err := r.RanksOfAttempts(attempts)
	for _, of := range ranks {
		for _, rank := range of {
			nodes = append(nodes, rank.NodeID)
		}
	}
	return nodes, err
}
