package server

import (
	"context"
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
			for _, e := range found {
				if slices.Contains(tellDaemons, e.Type) {
					if err := s.askNodesOf(r, e.Subject); err != nil {
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

// tellDaemons are the events after which something is to be started, or ended, on nodes.
var tellDaemons = []string{ledger.JobOrdered, "job." + string(job.Pending), "job." + string(job.Cancelled),
	"job." + string(job.Failed)}

func (s *Server) askNodesOf(r ledger.Reader, jobID string) error {
	j, err := r.Job(ledger.Scope{All: true}, jobID)
	if err != nil {
		return ledger.IgnoreMissing(err)
	}
	ranks, err := r.JobRanks(j.ID, j.Attempt)
	for _, rank := range ranks {
		s.sessions.Ask(rank.NodeID)
	}
	return err
}
