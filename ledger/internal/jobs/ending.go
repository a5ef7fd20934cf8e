package jobs

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/booking"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// askToEnd has an attempt ended by the daemons of its nodes, and reports whether it may run on one: what no daemon was
// told to start can be ended at once. A job that is being ended already may still be cancelled instead.
func askToEnd(tx *txn.Tx, p *txn.PoolTx, j job.Job, event job.Event, asked string) (asks bool, err error) {
	ranks, err := txn.RanksOf(tx, j.ID, j.Attempt)
	if err != nil || !slices.ContainsFunc(ranks, func(r job.Rank) bool { return mayRun(p, j, r) }) {
		return false, err
	}
	then := job.ThenRequeued
	if event == job.Cancel {
		then = job.ThenCancelled
	}
	switch {
	case !j.Ending.Is():
		j, err = j.TellToEnd(then, 0, tx.Now())
		j.Ending.Hold = event == job.Shelve
	case then == job.ThenCancelled && j.Ending.Then != then:
		j.Ending.Then, j.Ending.For, j.Ending.Hold = then, "", false
	default:
		err = &ledger.StateError{Subject: j.ID, State: "ending", Asked: asked}
	}
	if err != nil {
		return true, err
	}
	return true, tellToEnd(tx, p, j, ranks, ledger.Event{Type: ledger.JobEnding, Reason: job.Asked,
		Message: endingText(j.Ending, tx.Now())})
}

// mayRun reports whether a rank of a job's attempt may run. A daemon that was told to start it may have begun it, and
// not be able to say so yet; it is told in the transaction that opens the hold there.
func mayRun(p *txn.PoolTx, j job.Job, r job.Rank) bool {
	a, found := p.FindAllocation(j.AllocationID)
	return r.State == job.RankRunning || r.State == job.Ordered && found && slices.Contains(a.Opened, r.NodeID)
}

// neverBegun is how a rank ends that was to end before its daemon had begun it.
var neverBegun = job.End{Code: job.Stopped, Reason: "its attempt ended before it began here"}

// tellToEnd keeps a job whose attempt is to end. What no daemon can have begun of it is over.
func tellToEnd(tx *txn.Tx, p *txn.PoolTx, j job.Job, ranks []job.Rank, e ledger.Event) error {
	for _, r := range ranks {
		if r.State == job.Ordered && !mayRun(p, j, r) {
			r.State, r.End = job.RankEnded, neverBegun
			txn.PutRanks(tx, r)
		}
	}
	txn.PutJob(tx, j)
	e.OrganizationID, e.Subject, e.PoolID = j.OrganizationID, j.ID, j.PoolID
	tx.AddEvent(e)
	tx.Change.Urgent = true // its time runs
	tx.WakePlanAt(j.PoolID, j.Ending.By)
	return nil
}

func endingText(e job.Ending, now time.Time) string {
	then := string(e.Then)
	if e.Hold {
		then = "held"
	}
	return "told to end, and is then " + then + ": it gets KILL at " + ledger.FormatTimeSeen(e.KillAt(), now) +
		", and its GPUs are taken at " + ledger.FormatTimeSeen(e.By, now) + " at the latest"
}

// finishTold ends the attempt of a job that was told to end, as EndAsTold does, and gives its GPUs back.
func finishTold(tx *txn.Tx, p *txn.PoolTx, j job.Job, e job.End, message string) error {
	next, err := j.EndAsTold(e, tx.Now())
	if err != nil {
		return err
	}
	txn.NoteJob(tx, next, message)
	if err := txn.EndRanks(tx, next); err != nil {
		return err
	}
	tx.WakePlan(p.Pool.ID)
	return booking.ReleaseOfJob(tx, p, j.AllocationID, "job_"+string(next.State()))
}

// endInTime takes the GPUs of an attempt of which nobody has said that it ended when it was told to.
func endInTime(ctx context.Context, l Jobs, j job.Job) error {
	return l.onJob(ctx, ledger.SystemActor("scheduler"), j.ID, func(tx *txn.Tx, p *txn.PoolTx, is job.Job) error {
		if is.Attempt != j.Attempt || !is.Ending.IsOverdue(tx.Now()) {
			return nil
		}
		return finishTold(tx, p, is, job.End{}, "the daemons of its nodes did not say in time that it has ended")
	})
}

// stopOf returns that a daemon is to end an attempt of a job, if that was told to.
func stopOf(j job.Job, of ledger.JobAttempt) (ledger.JobStop, bool) {
	return ledger.JobStop{JobAttempt: of, Signal: j.Checkpoint.Signal, LeaderOnly: j.Checkpoint.LeaderOnly,
			Lead: j.Ending.Lead, Grace: j.Ending.Grace},
		j.Attempt == of.Attempt && j.Ending.Is()
}

// unheard are the nodes on which an attempt may run that was told to end, and whose daemons have said nothing since,
// with the last word of the one that has been silent for the longest time; zero: it never said any.
func unheard(r ledger.Reader, j job.Job) (ids []string, last time.Time, err error) {
	if !j.Ending.Is() {
		return nil, last, nil
	}
	ranks, err := r.JobRanks(j.ID, j.Attempt)
	if err != nil {
		return nil, last, err
	}
	var runs []string
	for _, rank := range ranks {
		if rank.State != job.RankEnded {
			runs = append(runs, rank.NodeID)
		}
	}
	if len(runs) == 0 {
		return nil, last, nil
	}
	seen, err := r.DaemonsSeen(runs)
	for _, id := range runs {
		if at := seen[id]; at.Before(j.Ending.Asked) {
			if len(ids) == 0 || at.Before(last) {
				last = at
			}
			ids = append(ids, id)
		}
	}
	return ids, last, err
}

// UnheardBy are the nodes of a job that was told to end whose daemons are silent, and have not heard that.
func UnheardBy(r ledger.Reader, j job.Job) ([]string, error) {
	ids, last, err := unheard(r, j)
	if err != nil || len(ids) == 0 || r.Now().Sub(last) <= ledger.SilentAfter {
		return nil, err
	}
	return ids, nil
}

// tellUnheard says of a job that was told to end where no daemon has heard it. A daemon hears at once, and tells so
// with its next report: until it counts as silent, it has.
func tellUnheard(r ledger.Reader, e *ledger.Explanation, j job.Job) error {
	ids, last, err := unheard(r, j)
	if err == nil && len(ids) > 0 && r.Now().Sub(last) > ledger.SilentAfter {
		e.Summary = unheardSummary(j, ids, last, e.At)
	}
	return err
}

// unheardSummary is one sentence on a job that was told to end where no daemon has heard it.
func unheardSummary(j job.Job, ids []string, last, now time.Time) string {
	then := thenText(j.Ending)
	said := "never said anything"
	if !last.IsZero() {
		said = "said something last at " + ledger.FormatTimeSeen(last, now)
	}
	return fmt.Sprintf("It is to end, and the daemon of %s, which %s, has not heard that: nothing was told TERM there "+
		"yet. At %s at the latest its GPUs are taken, and it %s; what runs there ends when the daemon is back.",
		nodesOf(j, ids), said, ledger.FormatTimeSeen(j.Ending.By, now), then)
}

// thenText is what becomes of a job once its attempt has ended.
func thenText(e job.Ending) string {
	if e.Hold {
		return "is held until somebody releases it"
	}
	return map[job.Then]string{job.ThenCancelled: "is cancelled", job.ThenRequeued: "waits for other GPUs",
		job.ThenPreempted: "waits again, with its place in the queue"}[e.Then]
}
