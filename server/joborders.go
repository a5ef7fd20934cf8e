package server

import (
	"context"
	"maps"
	"slices"

	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/ledger"
)

// ordersAtOnce is how many orders one look reads.
const ordersAtOnce = 200

// askForOrders has daemons that are attached here report as soon as there is a job for them to
// start, or to end: the answer tells them. Others are told within half a minute.
func (s *Server) askForOrders(ctx context.Context) {
	last := int64(-1)
	for {
		changed := s.feed.Changed()
		if err := s.askOnce(ctx, &last); err != nil && ctx.Err() == nil {
			s.cfg.Logger.WarnContext(ctx, "looking for jobs to start failed; daemons hear of them when they report",
				"error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// askOnce asks for what was ordered after an event, or, to begin with, from now on.
func (s *Server) askOnce(ctx context.Context, last *int64) error {
	return s.cfg.Ledger.Store().Read(ctx, func(r ledger.Reader) error {
		if *last < 0 {
			end, err := r.JournalEnd()
			*last = end
			return err
		}
		for more := true; more; {
			found, err := r.Events(ledger.Scope{All: true}, ledger.EventFilter{After: *last, Type: "job."}, ordersAtOnce)
			if err != nil {
				return err
			}
			if err := s.askNodesOf(r, found); err != nil {
				return err
			}
			for _, e := range found {
				*last = e.Seq
			}
			more = len(found) == ordersAtOnce
		}
		return nil
	})
}

// tellDaemons are the events after which something is to be started, or ended, on nodes, with how
// many there must be: the daemon of the only one has reported a completion itself.
var tellDaemons = map[string]int{ledger.JobOrdered: 1, ledger.JobEnding: 1, ledger.JobPreempting: 1,
	"job." + string(job.Pending): 1, "job." + string(job.Cancelled): 1, "job." + string(job.Failed): 1,
	"job." + string(job.Completed): 2}

// askNodesOf has those nodes report on whose jobs something happened that tells them.
func (s *Server) askNodesOf(r ledger.Reader, found []ledger.Event) error {
	least := map[string]int{} // nodes, by job
	for _, e := range found {
		nodes, tells := tellDaemons[e.Type]
		if e.Reason == ledger.OrderTold || !tells {
			continue
		}
		if least[e.Subject] == 0 || nodes < least[e.Subject] {
			least[e.Subject] = nodes
		}
	}
	if len(least) == 0 {
		return nil
	}
	all, err := r.JobsByID(slices.Sorted(maps.Keys(least)))
	if err != nil {
		return err
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
			s.sessions.Ask(rank.NodeID)
		}
	}
	return err
}
