package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/booking"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// errUnknownAttempt says that a daemon has an attempt that nobody here knows.
var errUnknownAttempt = errors.New("there is no such attempt")

// recordJob keeps one report, and reports whether its attempt is over here. The error is errUnknownAttempt if there is
// none.
func recordJob(tx *txn.Tx, p *txn.PoolTx, nodeID string, s ledger.JobReport) (over bool, err error) {
	ranks, err := txn.RanksOf(tx, s.JobID, s.Attempt)
	if err != nil {
		return false, err
	}
	at := -1
	for i, r := range ranks {
		if r.Rank == s.Rank && r.NodeID == nodeID {
			at = i
		}
	}
	if at < 0 {
		return false, errUnknownAttempt
	}
	if ranks[at].State == job.RankEnded || ranks[at].State == job.RankRunning && !s.Ended {
		return s.Ended, nil
	}
	if ranks[at].State = job.RankRunning; s.Ended {
		ranks[at].State, ranks[at].End = job.RankEnded, s.End
		ranks[at].End.At = tx.Now().Add(-s.EndedAgo)
	}
	txn.PutRanks(tx, ranks[at])
	j, err := txn.FindJob(tx, s.JobID)
	if err != nil || j.Attempt != s.Attempt || !j.HasGPUs() {
		return s.Ended, err
	}
	return s.Ended, advance(tx, p, j, ranks)
}

// advance moves a job by what is known of the ranks of its attempt.
func advance(tx *txn.Tx, p *txn.PoolTx, j job.Job, ranks []job.Rank) (err error) {
	if j.State() == job.Scheduled && job.AllRunning(ranks) {
		if j, err = j.Apply(job.Start, "", tx.Now()); err != nil {
			return err
		}
		txn.NoteJob(tx, j, "")
	}
	if j.Ending.Is() {
		if !job.AllEnded(ranks) {
			return nil
		}
		end, _ := job.Combine(ranks)
		return finishTold(tx, p, j, end, "")
	}
	end, over := job.Combine(ranks)
	if !over {
		return nil
	}
	return endAttempt(tx, p, j, end)
}

// endAttempt ends an attempt of a job, which has GPUs, and gives those back.
func endAttempt(tx *txn.Tx, p *txn.PoolTx, j job.Job, end job.End) error {
	if !end.Success() {
		ranks, err := txn.RanksOf(tx, j.ID, j.Attempt)
		if err != nil {
			return err
		}
		j = txn.StayOffFailed(p, j, ranks)
	}
	j, err := j.Finish(end, tx.Now())
	if err != nil {
		return err
	}
	txn.NoteJob(tx, j, describeEnd(end)+describeDelay(j, tx.Now()))
	if err := txn.EndRanks(tx, j); err != nil {
		return err
	}
	if j.State() == job.Pending {
		tx.WakePlanAt(p.Pool.ID, j.NotBefore)
	}
	return booking.ReleaseOfJob(tx, p, j.AllocationID, "job_over")
}

func describeEnd(e job.End) string {
	switch {
	case e.Reason != "":
		return ledger.ClipText(e.Reason, 300)
	case e.Signal != "":
		return "ended by the signal " + e.Signal
	case e.Ran:
		return fmt.Sprintf("exit code %d", e.ExitCode)
	}
	return ""
}

// late is how long after its end an attempt is heard to have ended of which that is told.
const late = 10 * time.Second

// describeDelay says of a job that is over when it ended, if that was long before it was heard.
func describeDelay(j job.Job, now time.Time) string {
	if !j.Over() || now.Sub(j.EndedAt) < late {
		return ""
	}
	return "; it ended at " + ledger.FormatTimeSeen(j.EndedAt, now) + ", and its node was not heard before"
}

// mostGap bounds how much output may be missing before a part, in bytes: as much as a daemon keeps.
const mostGap = 128 << 20

// StoreOutput keeps a part of what an attempt wrote on the actor's node, and returns where the next
// one begins. What is kept already is left alone. Of very much the middle is given up.
func (l Jobs) StoreOutput(ctx context.Context, actor ledger.Actor, o ledger.JobOutput) (next int64, err error) {
	if actor.Kind != ledger.NodeKey {
		return 0, ledger.ErrDenied
	}
	err = l.InGroup(ctx, ledger.SystemActor("node"), &ledger.LockHint{}, func(tx *txn.Tx) error {
		if err := judgeDaemon(tx, actor); err != nil {
			return err
		}
		ranks, err := tx.Port.JobRanks(o.JobID, o.Attempt)
		if err != nil {
			return err
		}
		mine := false
		for _, r := range ranks {
			mine = mine || r.Rank == o.Rank && r.NodeID == actor.NodeID
		}
		if !mine {
			return fmt.Errorf("storing output of job %s: %w", o.JobID, ledger.ErrNotFound)
		}
		end, err := tx.Port.JobOutputEnd(o.JobID, o.Attempt, o.Rank)
		if err != nil {
			return err
		}
		if o.Start-end > mostGap {
			return &ledger.InvalidError{Field: "offset", Rule: fmt.Sprintf("must be at most %d bytes beyond what is kept, "+
				"which ends at %d", int64(mostGap), end)}
		}
		if o = after(o, end); o.Start >= o.End {
			next = end
			return nil
		}
		next = o.End
		tx.Change.JobOutput = append(tx.Change.JobOutput, o)
		if kept := o.End - ledger.OutputTail; kept > ledger.OutputHead {
			tx.Change.TrimmedOutput = append(tx.Change.TrimmedOutput, ledger.TrimmedOutput{JobID: o.JobID,
				Attempt: o.Attempt, Rank: o.Rank, From: ledger.OutputHead, To: kept})
		}
		return nil
	})
	return next, err
}

// after is what a part has beyond an offset.
func after(o ledger.JobOutput, offset int64) ledger.JobOutput {
	for len(o.Pieces) > 0 && o.Start < offset {
		first := o.Pieces[0]
		skip := min(offset-o.Start, int64(len(first.Data)))
		o.Start += skip
		if skip == int64(len(first.Data)) {
			o.Pieces = o.Pieces[1:]
			continue
		}
		first.Data = first.Data[skip:]
		o.Pieces = append([]ledger.JobPiece{first}, o.Pieces[1:]...)
	}
	return o
}
