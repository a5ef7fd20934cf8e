package jobs

import (
	"context"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/booking"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// startWithin is how long the daemons of a job's nodes may take to start it on all of them.
const startWithin = 5 * time.Minute

// unstarted is what daemons have heard of an attempt that has its GPUs, and does not run on all of them yet.
type unstarted struct {
	told   []string // nodes whose silent daemons were told to start it: whether it runs there is not known
	untold []string // nodes whose silent daemons were not: it does not run there
}

// awayFrom says what silent daemons know of an attempt. A daemon is told to start it in the transaction that opens its
// hold there.
func awayFrom(a allocation.Allocation, isSilent func(nodeID string) bool) (is unstarted) {
	for _, held := range a.Devices {
		switch {
		case slices.Contains(is.told, held.NodeID) || slices.Contains(is.untold, held.NodeID) || !isSilent(held.NodeID):
		case slices.Contains(a.Opened, held.NodeID):
			is.told = append(is.told, held.NodeID)
		default:
			is.untold = append(is.untold, held.NodeID)
		}
	}
	return is
}

// beginsElsewhere reports whether an attempt may be placed anew because a silent daemon does not know of it. One that
// may run where a daemon is silent begins nowhere else, and what was reserved is given up last.
func (u unstarted) beginsElsewhere(j job.Job) bool {
	isReserved := j.Reservation != "" && j.Attempt <= 1
	return len(u.untold) > 0 && len(u.told) == 0 && !isReserved
}

// awayInQueue is awayFrom by what was read of the queue's pool.
func (q queue) awayInQueue(a allocation.Allocation) unstarted {
	return awayFrom(a, func(nodeID string) bool {
		return slices.ContainsFunc(q.pool.Nodes, func(n node.Node) bool { return n.ID == nodeID && q.isSilent(n) })
	})
}

// unstartedJobs are the allocations of jobs that have their GPUs and do not run yet.
func (q queue) unstartedJobs() (all []allocation.Allocation) {
	for _, a := range q.pool.Allocations {
		if j := q.holders[a.ID]; j.State() == job.Scheduled && a.State() == allocation.Active && !j.Ending.Is() {
			all = append(all, a)
		}
	}
	return all
}

// notStarted are the jobs that have had their GPUs for too long without having been started, and those that nobody
// will start where they are.
func (q queue) notStarted() (late, unheard []job.Job) {
	for _, a := range q.unstartedJobs() {
		j, away := q.holders[a.ID], q.awayInQueue(a)
		switch {
		case away.beginsElsewhere(j):
			unheard = append(unheard, j)
		case len(away.told) == 0 && q.now.Sub(a.ActiveAt) >= startWithin:
			late = append(late, j)
		}
	}
	return late, unheard
}

// nextUnstarted is when an attempt that has its GPUs will have waited too long for daemons, or the first of these
// daemons counts as silent; zero: none waits.
func (q queue) nextUnstarted() (at time.Time) {
	note := func(next time.Time) {
		if next.After(q.now) && (at.IsZero() || next.Before(at)) {
			at = next
		}
	}
	for _, a := range q.unstartedJobs() {
		note(a.ActiveAt.Add(startWithin))
		for _, held := range a.Devices {
			if seen := q.seen[a.PoolID][held.NodeID]; !seen.IsZero() {
				note(seen.Add(ledger.SilentAfter + time.Second))
			}
		}
	}
	return at
}

// giveUpUnstarted ends attempts that no daemon has started in time, and has those wait anew that nobody would start.
func giveUpUnstarted(ctx context.Context, l Jobs, q queue) error {
	for _, j := range q.late {
		if err := giveUpAttempt(ctx, l, j); err != nil {
			return err
		}
	}
	for _, j := range q.unheard {
		if err := placeAnew(ctx, l, j); err != nil {
			return err
		}
	}
	return nil
}

// giveUpAttempt ends an attempt that no daemon has started in time.
func giveUpAttempt(ctx context.Context, l Jobs, j job.Job) error {
	return l.onJob(ctx, ledger.SystemActor("scheduler"), j.ID, func(tx *txn.Tx, p *txn.PoolTx, is job.Job) error {
		if away, waits, err := awayNow(tx, p, is, j.Attempt); err != nil || !waits || len(away.told) > 0 {
			return err
		}
		return endAttempt(tx, p, is, job.End{Code: job.Unserved,
			Reason: "the daemons of its nodes did not start it within " + phrase.Length(startWithin)})
	})
}

// placeAnew has a job wait for other GPUs because a daemon is silent that was never told to start it. That is no fault
// of the job's, and no attempt of it is counted as lost.
func placeAnew(ctx context.Context, l Jobs, j job.Job) error {
	return l.onJob(ctx, ledger.SystemActor("scheduler"), j.ID, func(tx *txn.Tx, p *txn.PoolTx, is job.Job) error {
		away, waits, err := awayNow(tx, p, is, j.Attempt)
		if err != nil || !waits || !away.beginsElsewhere(is) {
			return err
		}
		next, err := is.Apply(job.Requeue, ledger.WaitsForDaemon, tx.Now())
		if err != nil {
			return err
		}
		txn.NoteJob(tx, next, "no daemon of node "+away.untold[0]+" is there that would start it, and none was told to")
		if err := txn.EndRanks(tx, next); err != nil {
			return err
		}
		tx.WakePlan(p.Pool.ID)
		return booking.ReleaseOfJob(tx, p, is.AllocationID, "job_"+string(next.State()))
	})
}

// awayNow is awayFrom in a transaction, and reports whether the attempt still waits for daemons.
func awayNow(tx *txn.Tx, p *txn.PoolTx, j job.Job, attempt int) (away unstarted, waits bool, err error) {
	a, found := p.FindAllocation(j.AllocationID)
	if !found || a.State() != allocation.Active || j.State() != job.Scheduled || j.Attempt != attempt || j.Ending.Is() {
		return away, false, nil
	}
	seen, err := p.DaemonsSeen()
	return awayFrom(a, func(nodeID string) bool {
		n, found := p.FindNode(nodeID)
		return found && ledger.IsSilent(n, seen[nodeID], tx.Now())
	}), true, err
}
