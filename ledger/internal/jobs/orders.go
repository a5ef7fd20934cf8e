package jobs

import (
	"context"
	"errors"
	"fmt"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/booking"
	"github.com/forewarm/forewarm/ledger/internal/fleet"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// mostOrders bounds how many jobs a daemon is told to start at once: their input is with them.
const mostOrders = 16

// TakeOrders returns what the actor's daemon is to start: attempts on its node of which it did not
// say that it knows them. Before anything is started, the holds of their allocations are open:
// where the pool does not allow that beside what is there, the attempt has ended.
func (l Jobs) TakeOrders(ctx context.Context, actor ledger.Actor, is capacity.Isolation, known []ledger.JobAttempt) (
	[]ledger.JobOrder, error) {
	if actor.Kind != ledger.NodeKey {
		return nil, ledger.ErrDenied
	}
	var orders []ledger.JobOrder
	err := l.Store.Read(ctx, func(r ledger.Reader) (err error) {
		orders, err = readOrders(r, actor.NodeID, known)
		return err
	})
	if err != nil {
		return nil, err
	}
	var out []ledger.JobOrder
	for _, o := range orders {
		err := fleet.Holds(l).OpenHold(ctx, ledger.SystemActor("node"), o.Allocation.ID, actor.NodeID, is)
		shared, isShared := errors.AsType[*ledger.SharedNodeError](err)
		state, isState := errors.AsType[*ledger.StateError](err)
		switch {
		case err == nil:
			out = append(out, o)
		case isShared:
			err = l.refuseOrder(ctx, actor, o, shared)
		case isState:
			err = l.refuseOrder(ctx, actor, o, state)
		case ledger.IgnoreMissing(err) == nil: // it has ended meanwhile
			err = nil
		}
		if err != nil {
			return nil, fmt.Errorf("opening the hold of job %s: %w", o.Job.ID, err)
		}
	}
	return out, nil
}

// refuseOrder ends an attempt that must not begin on the actor's node.
func (l Jobs) refuseOrder(ctx context.Context, actor ledger.Actor, o ledger.JobOrder, why error) error {
	_, err := l.RecordJobs(ctx, actor, []ledger.JobReport{{JobID: o.Job.ID, Attempt: o.Job.Attempt, Rank: o.Rank,
		Ended: true, End: job.End{Code: job.Unserved, Reason: why.Error()}}})
	return err
}

func readOrders(r ledger.Reader, nodeID string, known []ledger.JobAttempt) ([]ledger.JobOrder, error) {
	ranks, err := r.RanksOn(nodeID)
	if err != nil {
		return nil, err
	}
	knows := map[ledger.JobAttempt]bool{}
	for _, k := range known {
		knows[k] = true
	}
	var out []ledger.JobOrder
	for _, rank := range ranks {
		if rank.State != job.Ordered || knows[ledger.JobAttempt{JobID: rank.JobID, Attempt: rank.Attempt}] ||
			len(out) == mostOrders {
			continue
		}
		j, err := r.Job(ledger.Scope{All: true}, rank.JobID)
		if err != nil {
			return nil, err
		}
		a, err := r.Allocation(ledger.Scope{All: true}, j.AllocationID)
		if err != nil {
			return nil, err
		}
		if j.HasGPUs() && j.Attempt == rank.Attempt && a.State() == allocation.Active {
			out = append(out, ledger.JobOrder{Job: j, Rank: rank.Rank, Allocation: a})
		}
	}
	return out, nil
}

// RecordJobs keeps what the actor's daemon says of attempts on its node, and returns those that it
// may forget: what has ended and is known here, and what nobody knows. Repeated, it changes nothing.
func (l Jobs) RecordJobs(ctx context.Context, actor ledger.Actor, said []ledger.JobReport) (
	forget []ledger.JobAttempt, err error) {
	if actor.Kind != ledger.NodeKey {
		return nil, ledger.ErrDenied
	}
	err = l.InGroup(ctx, ledger.SystemActor("node"), &ledger.LockHint{Node: actor.NodeID}, func(tx *txn.Tx) error {
		p, _, err := fleet.LockPoolOfNode(tx, actor.NodeID)
		if err != nil {
			return err
		}
		forget = nil
		for _, s := range said {
			over, err := recordJob(tx, p, actor.NodeID, s)
			if err != nil {
				return fmt.Errorf("recording job %s: %w", s.JobID, err)
			}
			if over {
				forget = append(forget, ledger.JobAttempt{JobID: s.JobID, Attempt: s.Attempt})
			}
		}
		return nil
	})
	return forget, err
}

// recordJob keeps one report, and reports whether all is known here.
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
		return true, nil // nobody here knows it
	}
	if ranks[at].State == job.RankEnded || ranks[at].State == job.RankRunning && !s.Ended {
		return s.Ended, nil
	}
	if ranks[at].State = job.RankRunning; s.Ended {
		ranks[at].State, ranks[at].End = job.RankEnded, s.End
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
	end, over := job.Combine(ranks)
	if !over {
		return nil
	}
	return endAttempt(tx, p, j, end)
}

// endAttempt ends an attempt of a job, which has GPUs, and gives those back.
func endAttempt(tx *txn.Tx, p *txn.PoolTx, j job.Job, end job.End) error {
	j, err := j.Finish(end, tx.Now())
	if err != nil {
		return err
	}
	txn.NoteJob(tx, j, describeEnd(end))
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

// mostGap bounds how much output may be missing before a part, in bytes: as much as a daemon keeps.
const mostGap = 128 << 20

// StoreOutput keeps a part of what an attempt wrote on the actor's node, and returns where the next
// one begins. What is kept already is left alone. Of very much the middle is given up.
func (l Jobs) StoreOutput(ctx context.Context, actor ledger.Actor, o ledger.JobOutput) (next int64, err error) {
	if actor.Kind != ledger.NodeKey {
		return 0, ledger.ErrDenied
	}
	err = l.InGroup(ctx, ledger.SystemActor("node"), &ledger.LockHint{}, func(tx *txn.Tx) error {
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
