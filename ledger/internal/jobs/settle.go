package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/fleet"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// mostOrders bounds how many jobs a daemon is told to start at once: their input is with them.
const mostOrders = 16

// SettleNode keeps what the actor's daemon says of what runs on its node, and returns what it is to do.
// All of it is one transaction, so that a job's end, its hold's, and the next job's start cost little;
// and none at all where nothing is new. Before an attempt is to be started, the hold of its allocation is
// open: where the pool does not allow that beside what is there, the attempt has ended. Repeated, it
// changes nothing.
func (l Jobs) SettleNode(ctx context.Context, actor ledger.Actor, said ledger.NodeReport) (
	out ledger.NodeOrders, err error) {
	if actor.Kind != ledger.NodeKey {
		return out, ledger.ErrDenied
	}
	if !tellsOfAnEnd(said) {
		out, quiet, err := l.settleQuiet(ctx, actor, said)
		if err != nil || quiet {
			return out, err
		}
	}
	err = l.InGroup(ctx, ledger.SystemActor("node"), &ledger.LockHint{Node: actor.NodeID}, func(tx *txn.Tx) error {
		p, n, err := fleet.LockPoolOfNode(tx, actor.NodeID)
		if err == nil {
			err = judgeDaemon(tx, actor)
		}
		if err == nil {
			out, err = settleNode(tx, p, n, said)
		}
		return err
	})
	return out, err
}

// judgeDaemon refuses a daemon whose key is not its node's any more. The ranks on its node are read with it.
func judgeDaemon(tx *txn.Tx, actor ledger.Actor) error {
	work, err := ledger.WorkOf(tx.Port, actor)
	if err != nil {
		return fmt.Errorf("judging a daemon: %w", err)
	}
	txn.KnowRanksOn(tx, actor.NodeID, work.Ranks)
	return nil
}

// tellsOfAnEnd reports whether a daemon says that an attempt or a hold has ended.
func tellsOfAnEnd(said ledger.NodeReport) bool {
	return len(said.Cleaned)+len(said.OverHolds)+len(said.GoneJobs) > 0 ||
		slices.ContainsFunc(said.Jobs, func(s ledger.JobReport) bool { return s.Ended })
}

// settleQuiet is SettleNode where nothing is new, and reports whether that is so.
func (l Jobs) settleQuiet(ctx context.Context, actor ledger.Actor, said ledger.NodeReport) (
	out ledger.NodeOrders, quiet bool, err error) {
	err = l.Store.Read(ctx, func(r ledger.Reader) error {
		known, err := ledger.WorkOf(r, actor)
		if err != nil {
			return err
		}
		if quiet = saysNothingNew(known.Ranks, said); !quiet {
			return nil
		}
		if out.Stop, err = readStops(r, said.Jobs); err == nil {
			out.Ended, out.Leases, err = ledger.JudgeHolds(r, known.Pool, actor.NodeID, said.Holds)
		}
		if err != nil || known.Pool.Recovery.Active() {
			return err
		}
		on, err := r.AllocationsOn(actor.NodeID)
		out.UnlistedHolds = ledger.UnlistedHolds(actor.NodeID, said.Holds, on)
		out.UnlistedJobs = ledger.UnlistedJobs(known.Ranks, said.Jobs)
		return err
	})
	return out, quiet, err
}

// saysNothingNew reports whether a daemon says of each attempt what is known here, and has none to start.
func saysNothingNew(known []job.Rank, said ledger.NodeReport) bool {
	for _, s := range said.Jobs {
		i := slices.IndexFunc(known, s.IsOf)
		if i < 0 || known[i].State != job.RankRunning {
			return false
		}
	}
	return !slices.ContainsFunc(known, func(r job.Rank) bool { return r.State == job.Ordered })
}

// readStops returns those of the attempts that a daemon runs that were told to end.
func readStops(r ledger.Reader, running []ledger.JobReport) (out []ledger.JobStop, err error) {
	if len(running) == 0 {
		return nil, nil
	}
	ids := make([]string, len(running))
	for i, s := range running {
		ids[i] = s.JobID
	}
	all, err := r.JobsByID(ids)
	for _, s := range running {
		if stop, asked := stopOf(all[s.JobID], s.Attempted()); asked {
			out = append(out, stop)
		}
	}
	return out, err
}

// settleNode is SettleNode on a pool that is locked. One that only reconciles starts nothing, ends nothing, and forgets
// no attempt that it does not know: that may be newer than the backup which was restored.
func settleNode(tx *txn.Tx, p *txn.PoolTx, n node.Node, said ledger.NodeReport) (out ledger.NodeOrders, err error) {
	recovers, woken, noted := p.Pool.Recovery.Active(), len(tx.Wake), len(tx.Change.Events)
	if err := readJobsOf(tx, n.ID, said.Jobs); err != nil {
		return out, err
	}
	for _, s := range said.Jobs {
		over, err := recordJob(tx, p, n.ID, s)
		switch {
		case errors.Is(err, errUnknownAttempt) && recovers:
			continue
		case errors.Is(err, errUnknownAttempt):
			over = true
		case err != nil:
			return out, fmt.Errorf("recording job %s: %w", s.JobID, err)
		}
		if over {
			out.Forget = append(out.Forget, s.Attempted())
			continue
		}
		j, err := txn.FindJob(tx, s.JobID)
		if err != nil {
			return out, err
		}
		if stop, asked := stopOf(j, s.Attempted()); asked {
			out.Stop = append(out.Stop, stop)
		}
	}
	// A daemon tells together that a job has ended and that its GPUs are clean.
	if err := fleet.RecordCleaned(tx, p, n, said.Cleaned); err != nil {
		return out, err
	}
	tx.Change.Urgent = tx.Change.Urgent || len(said.Cleaned)+len(said.Jobs) > 0 // others wait for its GPUs
	if recovers {
		return out, nil
	}
	if err := recordGone(tx, p, n.ID, said.GoneJobs); err != nil {
		return out, err
	}
	if err := fleet.RecordOver(tx, p, n, said.OverHolds); err != nil {
		return out, err
	}
	if len(said.Cleaned) > 0 {
		all, err := handOver(tx, p, n)
		if err != nil {
			return out, err
		}
		if all {
			planLater(tx, p.Pool.ID, woken)
		}
	}
	if out.Start, err = takeOrders(tx, p, n, said); err != nil {
		return out, err
	}
	noteTold(tx.Change.Events[noted:], out.Start)
	out.Place = placeOf(tx, p, out.Start)
	live := slices.Collect(p.Allocations.All())
	out.Ended = ledger.EndedIn(n.ID, said.Holds, live, p.Cleaning, tx.Now())
	out.Leases = ledger.LeasesIn(n.ID, said.Holds, live, tx.Now())
	out.UnlistedHolds = fleet.UnlistedHolds(p, n.ID, said.Holds)
	out.UnlistedJobs, err = unlistedJobs(tx, n.ID, said.Jobs)
	return out, err
}

// noteTold notes of orders that the answer has them, so that nobody asks the daemon to report for them.
func noteTold(events []ledger.Event, starts []ledger.JobOrder) {
	for i, e := range events {
		told := func(o ledger.JobOrder) bool { return o.Job.ID == e.Subject && o.Job.Shape.Nodes == 1 }
		if e.Type == ledger.JobOrdered && slices.ContainsFunc(starts, told) {
			events[i].Reason = ledger.OrderTold
		}
	}
}

// readJobsOf reads at once what is known of the attempts that a daemon tells of, and of those that it is to start.
func readJobsOf(tx *txn.Tx, nodeID string, said []ledger.JobReport) error {
	ranks, err := txn.RanksOn(tx, nodeID)
	if err != nil {
		return err
	}
	var all []ledger.JobAttempt
	for _, s := range said {
		all = append(all, s.Attempted())
	}
	for _, r := range ranks {
		of := ledger.JobAttempt{JobID: r.JobID, Attempt: r.Attempt}
		if r.State == job.Ordered && len(all)-len(said) < mostOrders && !slices.Contains(all, of) {
			all = append(all, of)
		}
	}
	return txn.ReadAttempts(tx, all)
}

// takeOrders returns the attempts that a daemon is to start, and opens their holds.
func takeOrders(tx *txn.Tx, p *txn.PoolTx, n node.Node, said ledger.NodeReport) (out []ledger.JobOrder, err error) {
	ranks, err := txn.RanksOn(tx, n.ID)
	if err != nil {
		return nil, err
	}
	for _, rank := range ranks {
		known := slices.ContainsFunc(said.Jobs, func(s ledger.JobReport) bool { return s.IsOf(rank) })
		if rank.State != job.Ordered || known || len(out) == mostOrders {
			continue
		}
		j, err := txn.FindJob(tx, rank.JobID)
		if err != nil {
			return nil, err
		}
		a, found := p.FindAllocation(j.AllocationID)
		if !found || !j.HasGPUs() || j.Ending.Is() || j.Attempt != rank.Attempt || a.State() != allocation.Active {
			continue
		}
		switch refused, err := openHold(tx, p, n, a, said.Isolation); {
		case err != nil:
			return nil, fmt.Errorf("opening the hold of job %s: %w", j.ID, err)
		case refused != "":
			if _, err := recordJob(tx, p, n.ID, ledger.JobReport{JobID: j.ID, Attempt: j.Attempt, Rank: rank.Rank, Ended: true,
				End: job.End{Code: job.Unserved, Reason: refused}}); err != nil {
				return nil, err
			}
		default:
			out = append(out, ledger.JobOrder{Job: j, Rank: rank.Rank, Allocation: a})
		}
	}
	return out, nil
}

// placeOf is what is known of the pool and the nodes on which jobs are to be started.
func placeOf(tx *txn.Tx, p *txn.PoolTx, starts []ledger.JobOrder) ledger.SettledPool {
	out := ledger.SettledPool{At: tx.Now(), State: ledger.PoolState{Pool: p.Pool}}
	known := map[string]bool{}
	for _, o := range starts {
		for _, held := range o.Allocation.Devices {
			if n, found := p.FindNode(held.NodeID); found && !known[n.ID] {
				known[n.ID] = true
				out.State.Nodes = append(out.State.Nodes, n)
			}
		}
	}
	return out
}

// openHold opens the hold of a job's allocation on a node, or says why it must not be.
func openHold(tx *txn.Tx, p *txn.PoolTx, n node.Node, a allocation.Allocation, is capacity.Isolation) (
	refused string, err error) {
	err = fleet.OpenForJob(tx, p, n, a, is)
	_, isShared := errors.AsType[*ledger.SharedNodeError](err)
	_, isState := errors.AsType[*ledger.StateError](err)
	if isShared || isState || errors.Is(err, ledger.ErrNotFound) {
		return err.Error(), nil
	}
	return "", err
}
