package jobs

import (
	"context"
	"fmt"
	"time"

	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/core/scheduler"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// noteAwaited keeps with the jobs that are waited for until when they are, so that they are told to leave then,
// whatever is predicted of them by that time.
func noteAwaited(ctx context.Context, l Jobs, q queue, d scheduler.Decision) error {
	for _, a := range d.Awaited {
		for _, allocationID := range a.Ends {
			j, runs := q.holders[allocationID]
			if _, waits := q.jobs[j.Awaited.For]; !runs || waits {
				continue
			}
			next := job.Awaited{For: a.For, Until: q.ends[j.ID]}
			if j.Awaited.Is() { // for somebody who waits no more
				next.Until = j.Awaited.Until
			}
			if err := await(ctx, l, j, next, q.jobs[a.For].OrganizationID); err != nil {
				return fmt.Errorf("noting that job %s is waited for: %w", j.ID, err)
			}
		}
	}
	return nil
}

// await keeps that an attempt is waited for, for a job of an organization.
func await(ctx context.Context, l Jobs, j job.Job, until job.Awaited, by string) error {
	return l.inPoolOf(ctx, ledger.SystemActor("scheduler"), j.PoolID, func(tx *txn.Tx, p *txn.PoolTx) error {
		is, err := txn.FindJob(tx, j.ID)
		if err != nil || is.State() != job.Running || is.Attempt != j.Attempt || is.Ending.Is() {
			return err
		}
		is.Awaited = until
		txn.PutJob(tx, is)
		tx.AddEvent(ledger.Event{OrganizationID: is.OrganizationID, Type: "job.awaited", Subject: is.ID, PoolID: p.Pool.ID,
			Message: awaitedText(is, by == is.OrganizationID, tx.Now())})
		tx.WakePlanAt(p.Pool.ID, until.Until)
		return nil
	})
}

// awaitedText says that a job is waited for, and what becomes of it. It names for whom, if that is of the same
// organization: others' jobs are nobody's business.
func awaitedText(j job.Job, own bool, now time.Time) string {
	who := "a job that goes before it"
	if own {
		who = "job " + j.Awaited.For
	}
	return who + " waits for its GPUs: it is predicted to end by " + ledger.FormatTimeSeen(j.Awaited.Until, now) +
		", and is told to leave then if it has not"
}

// awaitedFor are the jobs for whose end a job waits, before which they are not told to leave.
func awaitedFor(l Jobs, r ledger.Reader, j job.Job) (all []job.Job, err error) {
	live, err := l.LiveJobs.LiveJobs(r, j.PoolID)
	for _, other := range live {
		if other.Awaited.For == j.ID && !other.Ending.Is() {
			all = append(all, other)
		}
	}
	return all, err
}

// blockedByAwaited says for whose end a job waits, and what happens if that does not come.
func blockedByAwaited(e *ledger.Explanation, j job.Job, awaited []job.Job) {
	if len(awaited) == 0 {
		return
	}
	b := ledger.Blocker{Code: "awaited"}
	last := awaited[0].Awaited.Until
	for _, other := range awaited {
		who := "a job of another organization"
		if other.OrganizationID == j.OrganizationID {
			who = "job " + other.ID
		}
		b.Evidence = append(b.Evidence, who+", which is predicted to end by "+
			ledger.FormatTimeSeen(other.Awaited.Until, e.At)+"; else it is told to leave then")
		if other.Awaited.Until.After(last) {
			last = other.Awaited.Until
		}
	}
	if b.Message = "It waits for " + b.Evidence[0] + "."; len(awaited) > 1 {
		b.Message = "It waits for " + phrase.Count(len(awaited), "job") + " that are predicted to end soon; else they " +
			"are told to leave."
	}
	b.ClearsAt = &ledger.Band{P10: e.At, P50: last, P90: last}
	e.Blockers = append(e.Blockers, b)
}

// stillAwaited is a job that is waited for, as it is if nobody waits any more.
func stillAwaited(r ledger.Reader, j job.Job) (job.Job, error) {
	all, err := r.JobsByID([]string{j.Awaited.For})
	if err != nil {
		return j, fmt.Errorf("reading for whom job %s is waited for: %w", j.ID, err)
	}
	if winner, there := all[j.Awaited.For]; !there || winner.State() != job.Pending {
		j.Awaited = job.Awaited{}
	} else if winner.OrganizationID != j.OrganizationID {
		j.Awaited.For = ""
	}
	return j, nil
}

// explainAwaited says of a job that runs for whom it is waited for.
func explainAwaited(e *ledger.Explanation, j job.Job) {
	if j.Awaited.Until.IsZero() || j.Ending.Is() {
		return
	}
	e.Next = append(e.Next, ledger.Step{Code: "told_to_leave", At: j.Awaited.Until,
		Message: awaitedText(j, j.Awaited.For != "", e.At)})
}
