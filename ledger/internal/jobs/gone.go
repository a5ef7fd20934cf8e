package jobs

import (
	"fmt"

	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// goneReason is why an attempt is lost that ran by what is known here, and that its daemon does not have.
const goneReason = "the daemon of its node does not have it any more: it has ended, and how is not known"

// recordGone has the attempts be lost that the daemon of a node does not have any more although it said once that they
// run there: the ledger was restored from before their end, or the daemon has lost its state.
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
			if r.JobID != of.JobID || r.Attempt != of.Attempt || r.State != job.RankRunning {
				continue
			}
			if _, err := recordJob(tx, p, nodeID, ledger.JobReport{JobID: r.JobID, Attempt: r.Attempt, Rank: r.Rank,
				Ended: true, End: job.End{Code: job.Lost, Reason: goneReason}}); err != nil {
				return fmt.Errorf("recording that job %s is gone: %w", r.JobID, err)
			}
		}
	}
	return nil
}
