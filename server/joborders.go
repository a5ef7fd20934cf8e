package server

import (
	"context"

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
			for _, e := range found {
				if least, tells := tellDaemons[e.Type]; tells {
					if err := s.askNodesOf(r, e.Subject, least); err != nil {
						return err
					}
				}
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

func (s *Server) askNodesOf(r ledger.Reader, jobID string, least int) error {
	j, err := r.Job(ledger.Scope{All: true}, jobID)
	if err != nil {
		return ledger.IgnoreMissing(err)
	}
	if j.Shape.Nodes < least {
		return nil
	}
	ranks, err := r.JobRanks(j.ID, j.Attempt)
	for _, rank := range ranks {
		s.sessions.Ask(rank.NodeID)
	}
	return err
}
