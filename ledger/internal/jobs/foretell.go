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
	// foretellFor is how long it may take: the next look at the queue waits meanwhile.
	foretellFor = 5 * time.Second
)

// noteForetelling reports whether it is time to predict when jobs start, and else notes in the queue when that is.
func noteForetelling(l Jobs, q *queue) bool {
	last := l.Queues.Foretold(q.pool.Pool.ID)
	if !hasNewcomers(*q, last) {
		return false
	}
	next := last.Add(foretellEvery)
	if q.now.Before(next) {
		q.foretell = next
		return false
	}
	return true
}

// foretellStarts keeps when those jobs of a pool are predicted to start that came since it did so last, and still wait.
// What is predicted of a job later is easier, and not scored. Of what cannot be predicted nothing is kept. Where that
// fails, it is tried again as late as after a success; where more jobs wait than can be predicted in time, that is no
// failure.
func foretellStarts(ctx context.Context, l Jobs, q queue) error {
	poolID, at := q.pool.Pool.ID, q.now
	last := l.Queues.Foretold(poolID)
	var waiting []ledger.QueuedJob
	defer func() { l.Queues.NoteForetold(poolID, at) }()
	within, cancel := context.WithTimeout(ctx, foretellFor)
	defer cancel()
	err := l.Store.Read(within, func(r ledger.Reader) (err error) {
		at = r.Now()
		waiting, err = l.makeQueue(r, poolID) // not kept for others: what is decided after this changes it
		return err
	})
	if within.Err() != nil && ctx.Err() == nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("predicting when jobs of pool %s start: %w", poolID, err)
	}
	var starts []ledger.JobStartForecast
	for _, w := range waiting {
		if w.Start != nil && isNewcomer(w.Job, last, at) {
			starts = append(starts, ledger.JobStartForecast{JobID: w.ID, MadeAt: at, Band: w.Start.Band})
		}
	}
	return keepStarts(ctx, l, poolID, starts)
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
