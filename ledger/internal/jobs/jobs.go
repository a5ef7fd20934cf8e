// Package jobs has the verbs on jobs: they are submitted and steered by people, given GPUs when
// their turn comes, started by the daemons of their nodes, and ended by what those report.
//
// A job changes only under its pool's lock, together with its allocation.
package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/booking"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// Jobs are the verbs on jobs.
type Jobs struct{ *txn.Engine }

// SubmitJobs puts a job, or each of an array, into the queue of the pool where it could start
// first. *ledger.RefusedError: no pool could ever give it what it asks for.
func (l Jobs) SubmitJobs(ctx context.Context, actor ledger.Actor, c ledger.JobCommand) ([]job.Job, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	var out []job.Job
	err := l.InGroup(ctx, actor, c.Needs.LockHint(), func(tx *txn.Tx) error {
		var err error
		out, err = submitJobs(tx, c, nil)
		return err
	})
	for i := range out {
		out[i].Version = 1
	}
	return out, err
}

// submitJobs puts what is asked for into a queue, beside what the same transaction has put there before.
func submitJobs(tx *txn.Tx, c ledger.JobCommand, before added) ([]job.Job, error) {
	organizationID, err := tx.Actor.BookingOrganization()
	if err != nil {
		return nil, err
	}
	priorities := tx.Config.Scheduling.Now().Of("").Priorities
	c.Job.Priority = cmp.Or(c.Job.Priority, job.Priority(priorities.Default))
	c.Job.OrganizationID, c.Job.SubmittedBy, c.Job.UserID = organizationID, tx.Actor.KeyID, tx.Actor.UserID
	choose := booking.ChoosePool
	if c.Job.Reservation != "" {
		choose = booking.ReservedFor
	}
	p, one, err := choose(tx, c.Needs, c.Job)
	if err != nil {
		return nil, err
	}
	if err := ledger.CheckNotBefore(one.NotBefore); err != nil {
		return nil, err
	}
	if err := errors.Join(checkServed(tx, p), checkPriority(tx, p, c.Job), checkRate(tx, organizationID)); err != nil {
		return nil, err
	}
	if err := errors.Join(checkDependencies(tx, c.Job.Dependencies), checkNotTaken(tx, p, c.Job),
		checkExcluded(tx, c.Job.Where.Excludes), checkCompany(tx, c.Job.Where)); err != nil {
		return nil, err
	}
	if err := priorities.CheckLeaving(c.Job.Priority, c.Preemptible); err != nil {
		return nil, err
	}
	one.Preemptible = tx.Config.Scheduling.Now().Of(p.Pool.Name).Preemptible
	if c.Preemptible != nil {
		one.Preemptible = *c.Preemptible
	}
	one.Preemptible = priorities.AllowsLeaving(one)
	each, err := correspond(tx, c)
	if err != nil {
		return nil, err
	}
	one.Dependencies = slices.DeleteFunc(slices.Clone(one.Dependencies),
		func(d job.Depends) bool { return d.Condition == job.AfterCorr })
	indices := c.Indices
	if len(indices) > 0 {
		one.Array = arrayOf(tx.IDs.New(ids.Array), indices, c.ArrayLimit)
	} else {
		indices = []int{0}
	}
	if err := checkRoom(tx, p, organizationID, before[p.Pool.ID]+len(indices)); err != nil {
		return nil, err
	}
	out := make([]job.Job, 0, len(indices))
	for _, index := range indices {
		j := job.New(one, c.Held, tx.Now())
		j.ID, j.ArrayIndex = tx.IDs.New(ids.Job), index
		j.Dependencies = slices.Concat(j.Dependencies, each[index])
		txn.PutJob(tx, j)
		tx.AddEvent(ledger.Event{OrganizationID: j.OrganizationID, Type: "job.submitted", Subject: j.ID,
			PoolID: j.PoolID, Message: describeRequest(j)})
		out = append(out, j)
	}
	tx.WakePlan(p.Pool.ID)
	tx.Change.Urgent = true // somebody may wait for its output
	return out, nil
}

// checkRoom refuses what would make the queue of a pool longer than it may be, or one tenant's part
// of it.
func checkRoom(tx *txn.Tx, p *txn.PoolTx, organizationID string, more int) error {
	counts, err := txn.CountWaiting(tx, p.Pool.ID)
	if err != nil {
		return err
	}
	rules := tx.Config.Scheduling.Now().Of(p.Pool.Name)
	if counts[organizationID]+more > rules.MostWaitingOfOne {
		return &ledger.QueueFullError{Pool: p.Pool.Name, Most: rules.MostWaitingOfOne, OfOne: true, Asked: more}
	}
	all := more
	for _, n := range counts {
		all += n
	}
	if all > rules.MostWaiting {
		return &ledger.QueueFullError{Pool: p.Pool.Name, Most: rules.MostWaiting, Asked: more}
	}
	return nil
}

// checkDependencies refuses conditions on jobs and arrays that there are not: so that no circle can be made.
func checkDependencies(tx *txn.Tx, all []job.Depends) error {
	for i, d := range all {
		own, err := isOwn(tx, d.JobID)
		if err != nil {
			return err
		}
		if !own {
			return &ledger.InvalidError{Field: fmt.Sprintf("dependencies[%d].job_id", i),
				Rule: "must be the id of a job or an array of yours", Fix: "see: forewarm jobs list"}
		}
	}
	return nil
}

// CancelJob ends a job. What of it runs is told to end by its nodes' daemons: TERM, and KILL when its
// grace is over. The job is cancelled once it has.
func (l Jobs) CancelJob(ctx context.Context, actor ledger.Actor, id string) (job.Job, error) {
	return l.change(ctx, actor, id, toCancel)
}

// HoldJob keeps a job that waits from starting, until it is released.
func (l Jobs) HoldJob(ctx context.Context, actor ledger.Actor, id string) (job.Job, error) {
	return l.change(ctx, actor, id, toHold)
}

// ReleaseJob lets a job that is held start.
func (l Jobs) ReleaseJob(ctx context.Context, actor ledger.Actor, id string) (job.Job, error) {
	return l.change(ctx, actor, id, toRelease)
}

// RequeueJob takes the GPUs of a job that has some, as CancelJob does, and has it wait for others.
func (l Jobs) RequeueJob(ctx context.Context, actor ledger.Actor, id string) (job.Job, error) {
	return l.change(ctx, actor, id, toRequeue)
}

// ShelveJob ends what a job has running, as RequeueJob does, and holds it then.
func (l Jobs) ShelveJob(ctx context.Context, actor ledger.Actor, id string) (job.Job, error) {
	return l.change(ctx, actor, id, toShelve)
}

// change does to a job what somebody asked for.
func (l Jobs) change(ctx context.Context, actor ledger.Actor, id string, a ask) (out job.Job, err error) {
	err = l.onJob(ctx, actor, id, func(tx *txn.Tx, p *txn.PoolTx, j job.Job) error {
		if err := a.doTo(tx, p, j); err != nil {
			return err
		}
		var err error
		out, err = txn.FindJob(tx, id)
		out.Version++
		return err
	})
	return out, err
}

// onJob runs fn on a job that the actor may see, under its pool's lock.
func (l Jobs) onJob(ctx context.Context, actor ledger.Actor, id string,
	fn func(tx *txn.Tx, p *txn.PoolTx, j job.Job) error) error {
	var seen job.Job
	err := l.Store.Read(ctx, func(r ledger.Reader) (err error) {
		seen, err = r.Job(actor.Scope(), id)
		return err
	})
	if err != nil {
		return fmt.Errorf("reading job %s: %w", id, err)
	}
	return l.InGroup(ctx, actor, &ledger.LockHint{Pool: seen.PoolID}, func(tx *txn.Tx) error {
		p, err := tx.LockPool(seen.PoolID)
		if err != nil {
			return fmt.Errorf("locking pool: %w", err)
		}
		j, err := txn.FindJob(tx, id)
		if err != nil {
			return err
		}
		if j.PoolID != seen.PoolID { // it has moved meanwhile
			return ledger.ErrConflict
		}
		return fn(tx, p, j)
	})
}

func describeRequest(j job.Job) string {
	text := j.Shape.String() + " GPU"
	if j.Name != "" {
		text = j.Name + ": " + text
	}
	return ledger.ClipText(text, 120)
}

// waiting are the jobs that would start if there were GPUs for them.
func waiting(all []job.Job) []job.Job {
	return slices.DeleteFunc(slices.Clone(all), func(j job.Job) bool { return j.State() != job.Pending })
}
