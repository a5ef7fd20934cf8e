package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/booking"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// ExplainJob says why a job is as it is: of one that waits, everything that must clear.
func (l Jobs) ExplainJob(ctx context.Context, actor ledger.Actor, id string) (ledger.Explanation, error) {
	var e ledger.Explanation
	var j job.Job
	var queued []ledger.QueuedJob
	err := l.Store.Read(ctx, func(r ledger.Reader) (err error) {
		if j, err = r.Job(actor.Scope(), id); err != nil {
			return err
		}
		e = ledger.Explanation{At: r.Now(), Kind: "job", Subject: j.ID, State: string(j.State()), Reason: j.Reason,
			PoolID: j.PoolID, Since: sinceOf(j)}
		if j.State() == job.Pending {
			queued, err = QueueOf(r, j.PoolID)
		}
		return err
	})
	if err != nil {
		return e, fmt.Errorf("reading job %s: %w", id, err)
	}
	e.Summary = summaryOf(j)
	if j.State() == job.Held {
		e.Blockers = append(e.Blockers, ledger.Blocker{Code: "held", Message: "It is held until somebody releases it.",
			Fix: "forewarm jobs release " + j.ID})
	}
	for i, q := range queued {
		if q.ID == j.ID {
			return l.explainWaiting(ctx, e, j, q, queued[:i])
		}
	}
	return e, nil
}

// explainWaiting names what a job waits for that is not started yet.
func (l Jobs) explainWaiting(ctx context.Context, e ledger.Explanation, j job.Job, q ledger.QueuedJob,
	before []ledger.QueuedJob) (ledger.Explanation, error) {
	switch q.Code {
	case ledger.WaitsForJob:
		e.Summary = "It waits for another job: " + q.Detail + "."
		e.Blockers = append(e.Blockers, ledger.Blocker{Code: q.Code, Message: e.Summary})
		return e, nil
	case ledger.WaitsForTime:
		e.Summary = "It does not start before its time: " + q.Detail + "."
		e.Blockers = append(e.Blockers, ledger.Blocker{Code: q.Code, Message: e.Summary,
			ClearsAt: &ledger.Band{P10: j.NotBefore, P50: j.NotBefore, P90: j.NotBefore}})
		return e, nil
	}
	e.Summary = fmt.Sprintf("It waits for GPUs, as number %d of its pool's queue.", q.Position)
	if len(before) > 0 {
		blocker := ledger.Blocker{Code: "queue", Message: phrase.Count(len(before), "job") + " would start before it now.",
			Fix: "forewarm queue"}
		if before[0].OrganizationID == j.OrganizationID { // others' are nobody's business
			blocker.Evidence = []string{"the first is " + before[0].ID}
		}
		e.Blockers = append(e.Blockers, blocker)
	}
	err := l.tryJob(ctx, j)
	if refused, ok := errors.AsType[*ledger.RefusedError](err); ok {
		e.Refused, err = refused, nil
	}
	if errors.Is(err, errServed) {
		e.Next, err = append(e.Next, ledger.Step{Code: "start", At: e.At,
			Message: "there are GPUs for it; it starts when its turn comes"}), nil
	}
	return e, err
}

// errServed ends a trial in which a job got its GPUs, so that nothing of it stays.
var errServed = errors.New("it would get its GPUs")

// tryJob asks what admission would say to a job now, and changes nothing.
func (l Jobs) tryJob(ctx context.Context, j job.Job) error {
	return l.asSubmitter(ctx, j, func(tx *txn.Tx, p *txn.PoolTx) error {
		next, err := j.Apply(job.Schedule, "", tx.Now())
		if err != nil {
			return err
		}
		txn.PutJob(tx, next)
		if _, err := booking.ServeJob(tx, p, next); err != nil {
			return err
		}
		return errServed
	})
}

// summaryOf is one sentence on a job that does not wait.
func summaryOf(j job.Job) string {
	switch j.State() {
	case job.Held:
		return "It is held."
	case job.Scheduled:
		return "It has its place, and is started as soon as its nodes are up and their daemons have been told: forewarm " +
			"explain " + j.AllocationID
	case job.Running:
		return "It runs, and ends by itself or " + phrase.Length(j.MaxRuntime) + " after its start."
	case job.Completed:
		return "It has completed."
	case job.Cancelled:
		return "It was cancelled."
	case job.Failed:
		return "It has failed: " + cmp.Or(describeEnd(j.End), j.Reason) + "."
	}
	return ""
}
