package txn

import (
	"fmt"
	"maps"
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
	if j, found := tx.jobs.byID[id]; found {
		return j, nil
	}
	j, err := tx.Port.Job(ledger.Scope{All: true}, id)
	if err != nil {
		return j, fmt.Errorf("reading job %s: %w", id, err)
	}
	if tx.jobs.byID == nil {
		tx.jobs.byID = map[string]job.Job{}
	}
	tx.jobs.byID[id] = j
	return j, nil
}

// jobsRead is what a transaction has read of jobs: nobody else changes it meanwhile.
type jobsRead struct {
	byID    map[string]job.Job
	arrays  map[string]job.Array // by job
	ranks   map[ledger.JobAttempt][]job.Rank
	onNode  map[string][]job.Rank          // that have not ended
	waiting map[string]map[string]int      // in each pool, by organization
	naming  map[string]map[string][]string // in each pool, by the reservation that they name
	// changed has where in the change each job is, of the first of them: an array has thousands.
	changed map[string]int
}

// ranksOf returns the ranks of an attempt as they were before this transaction.
func ranksOf(tx *Tx, key ledger.JobAttempt) ([]job.Rank, error) {
	if all, found := tx.jobs.ranks[key]; found {
		return slices.Clone(all), nil
	}
	all, err := tx.Port.JobRanks(key.JobID, key.Attempt)
	if err != nil {
		return nil, fmt.Errorf("reading the ranks of job %s: %w", key.JobID, err)
	}
	if tx.jobs.ranks == nil {
		tx.jobs.ranks = map[ledger.JobAttempt][]job.Rank{}
	}
	tx.jobs.ranks[key] = all
	return slices.Clone(all), nil
}

// ReadJobs reads jobs at once: FindJob then asks the database for none of them.
func ReadJobs(tx *Tx, wanted []string) error {
	if len(wanted) == 0 {
		return nil
	}
	all, err := tx.Port.WholeJobs(wanted)
	if err != nil {
		return fmt.Errorf("reading jobs: %w", err)
	}
	if tx.jobs.byID == nil {
		tx.jobs.byID = map[string]job.Job{}
	}
	maps.Copy(tx.jobs.byID, all)
	return nil
}

// ReadAttempts is ReadJobs of the jobs of attempts, and reads their ranks, too, for RanksOf.
func ReadAttempts(tx *Tx, attempts []ledger.JobAttempt) error {
	if len(attempts) == 0 {
		return nil
	}
	wanted := make([]string, len(attempts))
	for i, a := range attempts {
		wanted[i] = a.JobID
	}
	if err := ReadJobs(tx, wanted); err != nil {
		return err
	}
	ranks, err := tx.Port.RanksOfAttempts(attempts)
	if err != nil {
		return fmt.Errorf("reading the ranks of jobs: %w", err)
	}
	if tx.jobs.ranks == nil {
		tx.jobs.ranks = map[ledger.JobAttempt][]job.Rank{}
	}
	for _, a := range attempts {
		tx.jobs.ranks[a] = ranks[a] // also that there are none
	}
	return nil
}

// CountWaiting is how many jobs of a pool, which is locked, were not over before this transaction, by organization.
// Nothing of it may be changed.
func CountWaiting(tx *Tx, poolID string) (map[string]int, error) {
	if counts, found := tx.jobs.waiting[poolID]; found {
		return counts, nil
	}
	counts, err := tx.Port.CountLiveJobs(poolID)
	if err != nil {
		return nil, err
	}
	if tx.jobs.waiting == nil {
		tx.jobs.waiting = map[string]map[string]int{}
	}
	tx.jobs.waiting[poolID] = counts
	return counts, nil
}

// changedJob is where a job is in the change; -1: it is not.
func changedJob(tx *Tx, id string) int {
	all := tx.Change.Jobs
	if len(tx.jobs.changed) > len(all) || tx.jobs.changed == nil { // a verb that failed has taken its own back
		tx.jobs.changed = map[string]int{}
	}
	for i := len(tx.jobs.changed); i < len(all); i++ {
		tx.jobs.changed[all[i].ID] = i
	}
	if i, found := tx.jobs.changed[id]; found {
		return i
	}
	return -1
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

// NoteJob keeps a job after a step, and journals it. The input of one that is over is deleted.
func NoteJob(tx *Tx, j job.Job, message string) {
	PutJob(tx, j)
	leaveRoom(tx, j)
	if j.Over() && len(j.Command.Input) > 0 {
		tx.Change.DroppedInput = append(tx.Change.DroppedInput, j.ID) // nobody reads it any more
	}
	tx.AddEvent(ledger.Event{OrganizationID: j.OrganizationID, Type: "job." + string(j.State()), Subject: j.ID,
		PoolID: j.PoolID, Reason: j.Reason, Message: message})
}

// RanksOf returns the ranks of an attempt as this transaction leaves them.
func RanksOf(tx *Tx, jobID string, attempt int) ([]job.Rank, error) {
	all, err := ranksOf(tx, ledger.JobAttempt{JobID: jobID, Attempt: attempt})
	if err != nil {
		return nil, err
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

// RanksOn returns the ranks on a node that have not ended, as this transaction leaves them.
func RanksOn(tx *Tx, nodeID string) ([]job.Rank, error) {
	known, found := tx.jobs.onNode[nodeID]
	if !found {
		var err error
		if known, err = tx.Port.RanksOn(nodeID); err != nil {
			return nil, fmt.Errorf("reading the jobs on node %s: %w", nodeID, err)
		}
		KnowRanksOn(tx, nodeID, known)
	}
	all := slices.Clone(known)
	for _, r := range tx.Change.JobRanks {
		all = slices.DeleteFunc(all, r.IsSame)
		if r.NodeID == nodeID && r.State != job.RankEnded {
			all = append(all, r)
		}
	}
	return all, nil
}

// KnowRanksOn notes what was read of the ranks on a node, unless that is known already.
func KnowRanksOn(tx *Tx, nodeID string, stored []job.Rank) {
	if _, known := tx.jobs.onNode[nodeID]; known {
		return
	}
	if tx.jobs.onNode == nil {
		tx.jobs.onNode = map[string][]job.Rank{}
	}
	tx.jobs.onNode[nodeID] = stored
}

// PutRanks adds or changes ranks.
func PutRanks(tx *Tx, all ...job.Rank) {
	for _, r := range all {
		i := slices.IndexFunc(tx.Change.JobRanks, r.IsSame)
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
	tx.Change.Urgent = true
	tx.AddEvent(ledger.Event{OrganizationID: j.OrganizationID, Type: ledger.JobOrdered, Subject: j.ID, PoolID: j.PoolID,
		Message: "to be started on " + phrase.Count(len(a.Slots), "node")})
	return nil
}

// settleJob counts for a job what its allocation cost, which has ended, and ends its attempt
// unless that has ended before.
func settleJob(tx *Tx, p *PoolTx, a allocation.Allocation) error {
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
	ranks, err := RanksOf(tx, j.ID, j.Attempt)
	if err != nil {
		return err
	}
	if err := EndRanks(tx, j); err != nil {
		return err
	}
	end := endOf(a)
	if j.Ending.Is() && end.Code != job.Asked { // its end was wanted: nobody is to blame for how it came
		end.Reason = ""
		j, err = j.EndAsTold(job.End{}, tx.Now())
	} else if end.Code == job.Asked {
		j.End = end
		j, err = j.Apply(job.Cancel, job.Asked, tx.Now())
	} else {
		j, err = StayOffFailed(p, j, ranks).Finish(end, tx.Now())
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

// reasonLost is why an attempt ended whose allocation failed, for people.
func reasonLost(reason string) string {
	if reason == "" || reason == plan.ReasonNodeLost {
		return "a node was lost"
	}
	return "a node was lost: " + reason
}

// endOf says how an attempt ended whose allocation did.
func endOf(a allocation.Allocation) job.End {
	switch a.State() {
	case allocation.Failed:
		return job.End{Code: job.Lost, Reason: reasonLost(a.Reason)}
	case allocation.Expired:
		if a.Reason == plan.ReasonLease { // it outlasts the job's time: nobody has heard of it
			return job.End{Code: job.Lost, Reason: "its lease was over, and the daemons of its nodes had not said how it ended"}
		}
		return job.End{Code: job.LeaseOver, Reason: "the lease of its allocation was over: " + a.Reason}
	default:
		return job.End{Code: job.Asked, Reason: "its allocation was given back: " + a.Reason}
	}
}
