package jobs

import (
	"errors"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/scheduler"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/booking"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// A job that ends gives its GPUs to whose turn is next, in the transaction that its daemon's report makes: they would
// be idle until somebody has looked at the queue, and the daemon until it was told.
const (
	// mostTurns bounds of how many jobs the scheduler says that it is their turn next.
	mostTurns = scheduler.MostNext
	// turnsLast is for how long that is true without another look at the queue. Whatever changes it causes one.
	turnsLast = 10 * time.Second
	// turnsRenewed is how soon the queue is looked at again where others had their turn without that.
	turnsRenewed = 250 * time.Millisecond
)

// nextTurns are the jobs whose turn is next, from what a cycle has left, as long as single jobs of the pool give their
// GPUs back.
func (q queue) nextTurns(s *scheduler.Scheduler, started []scheduler.Start, rec *recording) []ledger.JobTurn {
	var next []ledger.JobTurn
	for _, id := range rec.next(s, q.now, firstEnds(q, started)) {
		is := q.expected[id]
		next = append(next, ledger.JobTurn{JobID: id, Predicted: job.Predicted{P10: is.P10, P50: is.P50, P90: is.P90}})
	}
	return next
}

// firstEnds are those of the jobs that run, or have just started, whose GPUs others get who have their turn next.
func firstEnds(q queue, started []scheduler.Start) (ends []string) {
	for _, a := range q.pool.Allocations {
		if j, ok := q.holders[a.ID]; ok && a.Shape.Nodes == 1 && !j.Ending.Is() && len(ends) < mostTurns {
			ends = append(ends, a.ID)
		}
	}
	for _, start := range started {
		if len(start.Spots) == 1 && len(ends) < mostTurns {
			ends = append(ends, start.Job)
		}
	}
	return ends
}

// turnsOf returns whose turn is next, as this transaction leaves it.
func turnsOf(tx *txn.Tx, poolID string) (ledger.JobTurns, error) {
	for _, t := range tx.Change.JobTurns {
		if t.PoolID == poolID {
			return t, nil
		}
	}
	return tx.Port.JobTurns(poolID)
}

// putTurns keeps whose turn is next.
func putTurns(tx *txn.Tx, t ledger.JobTurns) {
	isOld := func(o ledger.JobTurns) bool { return o.PoolID == t.PoolID }
	tx.Change.JobTurns = append(slices.DeleteFunc(slices.Clone(tx.Change.JobTurns), isOld), t)
}

// handOver starts those whose turn is next on the GPUs of a node that are free, in order, up to the first that cannot
// start there at once. It reports whether nobody has to look at the queue for that: all of them are taken.
func handOver(tx *txn.Tx, p *txn.PoolTx, n node.Node) (all bool, err error) {
	t, err := turnsOf(tx, p.Pool.ID)
	if err != nil || len(t.Next) == 0 || tx.Now().Sub(t.DecidedAt) > turnsLast || n.State() != node.Ready ||
		n.Heat.IsHot(tx.Now()) {
		return false, err
	}
	free, before, by := booking.CountFree(p, n), len(t.Next), submittersIn(tx)
	if err := readTurns(tx, t.Next[:min(before, 2*free)]); err != nil { // some may have started meanwhile
		return false, err
	}
	for free > 0 && len(t.Next) > 0 {
		had, err := haveTurn(tx, p, by, t.Next[0], free)
		if err != nil {
			return false, err
		}
		if !had {
			break
		}
		t.Next, free = t.Next[1:], booking.CountFree(p, n)
	}
	if len(t.Next) < before {
		putTurns(tx, t)
	}
	return free == 0 && len(t.Next) > 0, nil
}

func readTurns(tx *txn.Tx, turns []ledger.JobTurn) error {
	wanted := make([]string, len(turns))
	for i, t := range turns {
		wanted[i] = t.JobID
	}
	return txn.ReadJobs(tx, wanted)
}

// haveTurn starts a job on some of so many GPUs of a node, and reports whether others may have their turn: it runs
// there, or does not wait any more.
func haveTurn(tx *txn.Tx, p *txn.PoolTx, by submitters, turn ledger.JobTurn, free int) (had bool, err error) {
	j, err := txn.FindJob(tx, turn.JobID)
	if errors.Is(err, ledger.ErrNotFound) || err == nil && (j.State() != job.Pending || j.PoolID != p.Pool.ID) {
		return true, nil
	}
	if err != nil || j.Shape.Nodes != 1 || j.Shape.GPUs() > free || inReservation(j) {
		return false, err
	}
	actor, err := by.of(j)
	if errors.Is(err, errKeyOver) { // who looks at the queue fails it
		return false, nil
	}
	if err != nil {
		return false, err
	}
	j.Predicted = turn.Predicted
	err = tx.RunVerb(actor, func(tx *txn.Tx) error {
		if err := startJob(tx, p, j, booking.PartClaim{}); err != nil {
			return err
		}
		return runsAtOnce(tx, p, j.ID)
	})
	if isRefusal(err) || errors.Is(err, errNotAtOnce) {
		return false, nil
	}
	return err == nil, err
}

// errNotAtOnce says that a job would not run at once.
var errNotAtOnce = errors.New("it has no GPUs yet")

func runsAtOnce(tx *txn.Tx, p *txn.PoolTx, id string) error {
	j, err := txn.FindJob(tx, id)
	if err != nil {
		return err
	}
	a, found := p.FindAllocation(j.AllocationID)
	if j.State() != job.Scheduled || !found || a.State() != allocation.Active {
		return errNotAtOnce
	}
	return nil
}

// planLater has the pool planned a little later than what was done since some wakes asked for.
func planLater(tx *txn.Tx, poolID string, since int) {
	key := ledger.PlanKey(poolID)
	before, after := tx.Wake[:since:since], slices.Clone(tx.Wake[since:])
	tx.Wake = append(before, slices.DeleteFunc(after, func(w ledger.Wakeup) bool { return w.Key == key })...)
	tx.WakePlanAt(poolID, tx.Now().Add(turnsRenewed))
}
