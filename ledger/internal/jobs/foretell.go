package jobs

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

const (
	// foretellEvery is how often the starts of jobs that came are predicted, to be scored: that plays the scheduler
	// forward, which a look at the queue would else do each time.
	foretellEvery = 30 * time.Second
	// foretellWithin is how soon after it was submitted the start of a job must be predicted for that to be the first
	// prediction of it.
	foretellWithin = 5 * time.Minute
)

// foretellStarts keeps when those jobs are predicted to start that came since it did so last, and still wait. What is
// predicted of a job later is easier, and not scored. Of what cannot be predicted nothing is kept.
func foretellStarts(ctx context.Context, l Jobs, q *queue) error {
	poolID := q.pool.Pool.ID
	last := l.Queues.Foretold(poolID)
	if !hasNewcomers(*q, last) {
		return nil
	}
	if next := last.Add(foretellEvery); q.now.Before(next) {
		q.foretell = next
		return nil
	}
	var waiting []ledger.QueuedJob
	at := q.now
	err := l.Store.Read(ctx, func(r ledger.Reader) (err error) {
		at = r.Now()
		waiting, err = l.makeQueue(r, poolID) // not kept for others: what is decided after this changes it
		return err
	})
	if err != nil {
		return fmt.Errorf("predicting when jobs of pool %s start: %w", poolID, err)
	}
	var starts []ledger.JobStartForecast
	for _, w := range waiting {
		if w.Start != nil && isNewcomer(w.Job, last, at) {
			starts = append(starts, ledger.JobStartForecast{JobID: w.ID, MadeAt: at, Band: w.Start.Band})
		}
	}
	if err := keepStarts(ctx, l, poolID, starts); err != nil {
		return err
	}
	l.Queues.NoteForetold(poolID, at)
	return nil
}

func keepStarts(ctx context.Context, l Jobs, poolID string, all []ledger.JobStartForecast) error {
	for some := range slices.Chunk(all, changesAtOnce) {
		err := l.inPoolOf(ctx, ledger.SystemActor("scheduler"), poolID, func(tx *txn.Tx, _ *txn.PoolTx) error {
			tx.Change.JobStarts = append(tx.Change.JobStarts, some...)
			return nil
		})
		if err != nil {
			return fmt.Errorf("keeping when jobs of pool %s should start: %w", poolID, err)
		}
	}
	return nil
}

// forgetStart forgets when a job that waits was predicted to start, because somebody changes what that rested on.
func forgetStart(tx *txn.Tx, j job.Job) {
	if !j.HasGPUs() && j.Attempt == 0 {
		tx.Change.ForgetStarts = append(tx.Change.ForgetStarts, j.ID)
	}
}

// hasNewcomers reports whether jobs came to a queue since an instant.
func hasNewcomers(q queue, last time.Time) bool {
	for _, j := range q.jobs {
		if isNewcomer(j, last, q.now) {
			return true
		}
	}
	return slices.ContainsFunc(q.later, func(w ledger.QueuedJob) bool { return isNewcomer(w.Job, last, q.now) })
}

// isNewcomer reports whether a job was submitted after an instant, and lately, and never had GPUs.
func isNewcomer(j job.Job, last, now time.Time) bool {
	return j.Attempt == 0 && j.SubmittedAt.After(last) && now.Sub(j.SubmittedAt) <= foretellWithin
}
