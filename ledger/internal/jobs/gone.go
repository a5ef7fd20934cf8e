package jobs

import (
	"fmt"

	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// goneReason is why an attempt is lost that ran by what is known here, and that its daemon does not have.
const goneReason = "the daemon of its node does not have it any more: it has ended, and how is not known"

// recordGone ends the attempts that the daemon of a node does not have. One that it said once to run there is lost: the
// ledger was restored from before its end, or the daemon has lost its state. One that was told to end has not begun.
func recordGone(tx *txn.Tx, p *txn.PoolTx, nodeID string, gone []ledger.JobAttempt) error {
	if len(gone) == 0 {
		return nil
	}
	ranks, err := txn.RanksOn(tx, nodeID)
	if err != nil {
		return err
	}
	for _, of := range gone {
		for _, r := range ranks {
			if r.JobID != of.JobID || r.Attempt != of.Attempt {
				continue
			}
			end := job.End{Code: job.Lost, Reason: goneReason}
			if r.State == job.Ordered {
				isToEnd, err := isToldToEnd(tx, r)
				if err != nil {
					return err
				}
				if !isToEnd {
					continue // it is ordered again
				}
				end = neverBegun
			}
			if _, err := recordJob(tx, p, nodeID, ledger.JobReport{JobID: r.JobID, Attempt: r.Attempt, Rank: r.Rank,
				Ended: true, End: end}); err != nil {
				return fmt.Errorf("recording that job %s is gone: %w", r.JobID, err)
			}
		}
	}
	return nil
}

// isToldToEnd reports whether the attempt of a rank was told to end.
func isToldToEnd(tx *txn.Tx, r job.Rank) (bool, error) {
	j, err := txn.FindJob(tx, r.JobID)
	return j.Attempt == r.Attempt && j.Ending.Is(), err
}

// unlistedJobs returns, of the attempts on a node, those of which its daemon is asked whether it has them: beside those
// that it has said to run, those that it was told to start, and that are to end.
func unlistedJobs(tx *txn.Tx, nodeID string, listed []ledger.JobReport) ([]ledger.JobAttempt, error) {
	ranks, err := txn.RanksOn(tx, nodeID)
	if err != nil {
		return nil, err
	}
	var begun []job.Rank
	for _, r := range ranks {
		may := r.State == job.RankRunning
		if !may {
			if may, err = isToldToEnd(tx, r); err != nil {
				return nil, err
			}
		}
		if may {
			begun = append(begun, r)
		}
	}
	return ledger.UnlistedJobs(begun, listed), nil
}
