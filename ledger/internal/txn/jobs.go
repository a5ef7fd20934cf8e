package txn

import (
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/ledger"
)

// FindJob returns a job as this transaction leaves it. A job changes only under its pool's lock.
func FindJob(tx *Tx, id string) (job.Job, error) {
	if i := changedJob(tx, id); i >= 0 {
		return tx.Change.Jobs[i], nil
	}
	j, err := tx.Port.Job(ledger.Scope{All: true}, id)
	if err != nil {
		return j, fmt.Errorf("reading job %s: %w", id, err)
	}
	return j, nil
}

func changedJob(tx *Tx, id string) int {
	return slices.IndexFunc(tx.Change.Jobs, func(j job.Job) bool { return j.ID == id })
}

// PutJob adds or changes a job. However often it changes, one version stands for all.
func PutJob(tx *Tx, j job.Job) {
	i := changedJob(tx, j.ID)
	if i < 0 {
		tx.Change.Jobs = append(tx.Change.Jobs, j)
		return
	}
	tx.Change.Jobs = slices.Clone(tx.Change.Jobs) // a verb that fails gets back what was there
	tx.Change.Jobs[i] = j
}

// NoteJob keeps a job after a step, and journals it.
func NoteJob(tx *Tx, j job.Job, message string) {
	PutJob(tx, j)
	tx.AddEvent(ledger.Event{OrganizationID: j.OrganizationID, Type: "job." + string(j.State()), Subject: j.ID,
		PoolID: j.PoolID, Reason: j.Reason, Message: message})
}

// RanksOf returns the ranks of an attempt as this transaction leaves them.
func RanksOf(tx *Tx, jobID string, attempt int) ([]job.Rank, error) {
	all, err := tx.Port.JobRanks(jobID, attempt)
	if err != nil {
		return nil, fmt.Errorf("reading the ranks of job %s: %w", jobID, err)
	}
	for _, r := range tx.Change.JobRanks {
		i := slices.IndexFunc(all, func(o job.Rank) bool { return o.Rank == r.Rank })
		switch {
		case r.JobID != jobID || r.Attempt != attempt:
		case i < 0:
			all = append(all, r)
		default:
			all[i] = r
		}
	}
	return all, nil
}

// PutRanks adds or changes ranks.
func PutRanks(tx *Tx, all ...job.Rank) {
	for _, r := range all {
		i := slices.IndexFunc(tx.Change.JobRanks, func(o job.Rank) bool {
			return o.JobID == r.JobID && o.Attempt == r.Attempt && o.Rank == r.Rank
		})
		if i < 0 {
			tx.Change.JobRanks = append(tx.Change.JobRanks, r)
			continue
		}
		tx.Change.JobRanks = slices.Clone(tx.Change.JobRanks)
		tx.Change.JobRanks[i] = r
	}
}

// orderRanks has the nodes of an allocation that is active start the job that it was made for.
func orderRanks(tx *Tx, p *PoolTx, a allocation.Allocation) error {
	j, err := FindJob(tx, a.JobID)
	if err != nil {
		return err
	}
	for rank, slot := range a.Slots {
		n, ok := p.NodeOnSlot(slot)
		if !ok {
			return fmt.Errorf("ordering job %s: there is no node on slot %d", j.ID, slot)
		}
		PutRanks(tx, job.Rank{JobID: j.ID, Attempt: j.Attempt, Rank: rank, NodeID: n.ID, State: job.Ordered})
	}
	tx.AddEvent(ledger.Event{OrganizationID: j.OrganizationID, Type: ledger.JobOrdered, Subject: j.ID, PoolID: j.PoolID,
		Message: "to be started on " + phrase.Count(len(a.Slots), "node")})
	return nil
}

// settleJob counts for a job what its allocation cost, which has ended, and ends its attempt
// unless that has ended before.
func settleJob(tx *Tx, a allocation.Allocation) error {
	j, err := FindJob(tx, a.JobID)
	if err != nil {
		return err
	}
	if !a.ActiveAt.IsZero() {
		j.GPUTime += a.EndedAt.Sub(a.ActiveAt) * time.Duration(a.Shape.GPUs())
	}
	j.Cost += a.Cost
	if j.AllocationID != a.ID || !j.HasGPUs() {
		PutJob(tx, j)
		return nil
	}
	if err := EndRanks(tx, j); err != nil {
		return err
	}
	end := endOf(a)
	if end.Code == job.Asked {
		j.End = end
		j, err = j.Apply(job.Cancel, job.Asked, tx.Now())
	} else {
		j, err = j.Finish(end, tx.Now())
	}
	if err != nil {
		return err
	}
	NoteJob(tx, j, end.Reason)
	if j.State() == job.Pending {
		tx.WakePlanAt(j.PoolID, j.NotBefore)
	}
	return nil
}

// EndRanks ends what is not known to have ended of a job's last attempt.
func EndRanks(tx *Tx, j job.Job) error {
	ranks, err := RanksOf(tx, j.ID, j.Attempt)
	if err != nil {
		return err
	}
	for _, r := range ranks {
		if r.State != job.RankEnded {
			r.State, r.End = job.RankEnded, job.End{Code: job.Lost, Reason: "its attempt ended before it"}
			PutRanks(tx, r)
		}
	}
	return nil
}

// endOf says how an attempt ended whose allocation did.
func endOf(a allocation.Allocation) job.End {
	switch a.State() {
	case allocation.Failed:
		return job.End{Code: job.Lost, Reason: "a node was lost: " + a.Reason}
	case allocation.Expired:
		if a.Reason == plan.ReasonLease { // it outlasts the job's time: nobody has heard of it
			return job.End{Code: job.Lost, Reason: "its lease was over, and the daemons of its nodes had not said how it ended"}
		}
		return job.End{Code: job.LeaseOver, Reason: "the lease of its allocation was over: " + a.Reason}
	default:
		return job.End{Code: job.Asked, Reason: "its allocation was given back: " + a.Reason}
	}
}
