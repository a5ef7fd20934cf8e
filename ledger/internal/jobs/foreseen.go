package jobs

import (
	"context"

	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/ledger"
)

// ForeseeSubmitted tells of jobs that a dry run has submitted what the queue of their pool says of them, by id: why
// they would wait, and when they are predicted to start. What is submitted for good is told nothing: it costs a look at
// the whole queue.
func ForeseeSubmitted(ctx context.Context, l Jobs, all []job.Job) (map[string]ledger.QueuedJob, error) {
	if !l.IsDryRun || len(all) == 0 {
		return nil, nil //nolint:nilnil // nothing is told
	}
	mine, out := map[string]bool{}, map[string]ledger.QueuedJob{}
	for _, j := range all {
		mine[j.ID] = true
	}
	return out, l.Store.Read(ctx, func(r ledger.Reader) error {
		waiting, err := l.makeQueue(r, all[0].PoolID)
		for _, w := range waiting {
			if mine[w.ID] {
				out[w.ID] = w
			}
		}
		return err
	})
}
