package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/core/scheduler"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/booking"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// makeRooms carries out who leaves for whom. A plan that admission would not honour is not carried out:
// then the scheduler is asked again without the job that it was for, so that nobody waits behind it.
func (l Jobs) makeRooms(ctx context.Context, q queue, d scheduler.Decision, rec *recording) error {
	hopeless := map[string]bool{}
	for range mostRounds {
		if err := noteAwaited(ctx, l, q, d); err != nil {
			return err
		}
		before := len(hopeless)
		for _, plan := range d.Plans {
			made, err := l.makeRoom(ctx, q, plan)
			if err != nil {
				return fmt.Errorf("making room for job %s: %w", plan.For, err)
			}
			if !made {
				hopeless[plan.For] = true
				rec.notMade(plan.For)
			}
		}
		if len(hopeless) == before {
			return nil
		}
		rec.keep(ctx, nil)
		err := l.Store.Read(ctx, func(r ledger.Reader) (err error) {
			q, err = l.readQueue(r, q.pool.Pool.ID)
			return err
		})
		if err != nil {
			return fmt.Errorf("reading the queue again: %w", err)
		}
		q.order = slices.DeleteFunc(q.order, func(id string) bool { return hopeless[id] })
		s, err := q.scheduler()
		if err != nil {
			return fmt.Errorf("preparing the scheduler again: %w", err)
		}
		rec.begin(q, s)
		d = s.Cycle(q.now)
		rec.note(d)
	}
	return nil
}

// makeRoom tells jobs to leave for another one, if that lets it start, and keeps for it what they leave.
// It returns false where it does not.
func (l Jobs) makeRoom(ctx context.Context, q queue, plan scheduler.Plan) (made bool, err error) {
	j, waits := q.jobs[plan.For]
	if !waits {
		return false, nil
	}
	actor, err := newSubmitters(ctx, l).of(j)
	if errors.Is(err, errKeyOver) {
		return false, l.failAll(ctx, []failure{{j, job.End{Code: job.KeyRevoked, Reason: errKeyOver.Error()}}})
	}
	if err != nil {
		return false, err
	}
	err = l.inPoolOf(ctx, actor, j.PoolID, func(tx *txn.Tx, p *txn.PoolTx) error {
		made = false
		is, err := txn.FindJob(tx, j.ID)
		if err != nil || is.State() != job.Pending || is.NotBefore.After(tx.Now()) || is.PoolID != p.Pool.ID {
			return err
		}
		if _, has := p.RoomFor(is.ID); has {
			return nil
		}
		r := room{tx: tx, p: p, rules: q.rules, winner: is}
		if ok, err := r.find(plan); !ok || err != nil {
			return err
		}
		made = true
		return r.tell()
	})
	if isRefusal(err) {
		return false, nil
	}
	return made, err
}

// room is GPUs that are to be left for a job.
type room struct {
	tx      *txn.Tx
	p       *txn.PoolTx
	rules   ledger.Scheduling
	winner  job.Job
	leaving []leaver
	slots   []int
	by      time.Time // when all have left
}

// leaver is a job that leaves, with how its attempt ends.
type leaver struct {
	allocation.Allocation
	next job.Job
}

// find looks up who leaves by a plan, and leaves out whoever need not.
func (r *room) find(plan scheduler.Plan) (lets bool, err error) {
	for _, v := range plan.Victims {
		a, ok := r.p.FindAllocation(v.Job)
		if !ok {
			return false, nil
		}
		j, err := txn.FindJob(r.tx, a.JobID)
		if err != nil || !mayLeave(j, a.ID, r.rules, r.tx.Now()) {
			return false, ledger.IgnoreMissing(err)
		}
		if j, err = j.TellToEnd(job.ThenPreempted, r.rules.LeaveWithin, r.tx.Now()); err != nil {
			return false, err
		}
		if j.OrganizationID == r.winner.OrganizationID { // others' jobs are nobody's business
			j.Ending.For = r.winner.ID
		}
		r.leaving = append(r.leaving, leaver{a, j})
	}
	if lets, err = r.letsStart(r.leaving); !lets || err != nil {
		return false, err
	}
	for i := len(r.leaving) - 1; i >= 0; i-- { // the cheapest are the first
		fewer := slices.Delete(slices.Clone(r.leaving), i, i+1)
		spared, err := r.letsStart(fewer)
		if err != nil {
			return false, err
		}
		if spared {
			r.leaving = fewer
		}
	}
	if len(r.leaving) == 0 { // it can start soon without
		r.tx.WakePlanAt(r.p.Pool.ID, r.tx.Now().Add(lookAgain))
		return false, nil
	}
	return r.letsStart(r.leaving)
}

// letsStart reports whether the job would start if these left, and notes where and when.
func (r *room) letsStart(leaving []leaver) (bool, error) {
	r.by = r.tx.Now()
	var all []allocation.Allocation
	for _, v := range leaving {
		all = append(all, v.Allocation)
		if v.next.Ending.By.After(r.by) {
			r.by = v.next.Ending.By
		}
	}
	next, err := r.winner.Apply(job.Schedule, "", r.tx.Now())
	if err != nil {
		return false, err
	}
	slots, lets, err := booking.SlotsWithout(r.tx, r.p, next, all, r.by.Sub(r.tx.Now())+learned.CleanWithin)
	r.slots = slots
	return lets, err
}

// beginWithin is how long after all have left, and their nodes should be clean, a job may take to begin
// before others may have what was left for it.
const beginWithin = time.Minute

// tell tells all to leave, and keeps what they leave.
func (r *room) tell() error {
	j, now := r.winner, r.tx.Now()
	kept := learned.Room{For: j.ID, Since: now, GiveUp: r.by.Add(learned.CleanWithin + beginWithin), Slots: r.slots,
		GPUs: j.Shape.PerNode, Short: j.Shape.Short}
	kept.Until = kept.GiveUp.Add(booking.LeaseOfJob(j))
	for _, v := range r.leaving {
		kept.From = append(kept.From, v.ID)
		ranks, err := txn.RanksOf(r.tx, v.next.ID, v.next.Attempt)
		if err != nil {
			return err
		}
		err = tellToEnd(r.tx, r.p, v.next, ranks, ledger.Event{Type: ledger.JobPreempting, Reason: job.LeftForAnother,
			Message: "it leaves for " + leftFor(v.next.Ending) + ", gets KILL at " +
				ledger.FormatTimeSeen(v.next.Ending.KillAt(), now) + ", and waits again with its place in the queue"})
		if err != nil {
			return err
		}
		r.speakAsSystem()
	}
	r.p.PutRoom(kept)
	r.tx.AddEvent(ledger.Event{OrganizationID: j.OrganizationID, Type: "job.room", Subject: j.ID, PoolID: j.PoolID,
		Message: leaveText(len(r.leaving)) + " for it, by " + ledger.FormatTimeSeen(r.by, now) +
			" at the latest"})
	r.speakAsSystem()
	r.tx.WakePlanAt(r.p.Pool.ID, kept.GiveUp)
	return nil
}

// leaveText says that so many jobs leave.
func leaveText(n int) string {
	if n == 1 {
		return "1 job leaves"
	}
	return phrase.Count(n, "job") + " leave"
}

// speakAsSystem has the last event name nobody: who gets the GPUs is not the business of who leaves.
func (r *room) speakAsSystem() {
	r.tx.Change.Events[len(r.tx.Change.Events)-1].Actor = ledger.SystemActor("").KeyID
}

// mayLeave reports whether a job, with its present allocation, may be told to leave now.
func mayLeave(j job.Job, allocationID string, rules ledger.Scheduling, now time.Time) bool {
	return rules.Preemption && rules.Priorities.AllowsLeaving(j) && j.State() == job.Running &&
		j.AllocationID == allocationID && !j.Ending.Is() && j.Preemptions < rules.MostTimes &&
		now.Sub(j.StartedAt) >= rules.MinRuntime
}

// dropStaleRooms lets everybody have what was left for jobs that do not wait for it any more, or have not
// begun in time.
func (l Jobs) dropStaleRooms(ctx context.Context, q queue, broken []string) error {
	for _, r := range q.pool.Pool.Rooms {
		_, waits := q.jobs[r.For]
		if waits && q.now.Before(r.GiveUp) && !slices.Contains(broken, r.For) {
			continue
		}
		poolID := q.pool.Pool.ID
		err := l.InGroup(ctx, ledger.SystemActor("scheduler"), &ledger.LockHint{Pool: poolID}, func(tx *txn.Tx) error {
			p, err := tx.LockPool(poolID)
			if err != nil {
				return fmt.Errorf("locking pool: %w", err)
			}
			if is, ok := p.RoomFor(r.For); !ok || !is.Since.Equal(r.Since) {
				return nil
			}
			p.DropRoom(r.For)
			return nil
		})
		if err != nil {
			return fmt.Errorf("dropping the room of job %s: %w", r.For, err)
		}
	}
	return nil
}

// promises are the rooms, as the scheduler has them.
func (q queue) promises(t terms) (all []scheduler.Promise) {
	for _, r := range q.pool.Pool.Rooms {
		j, waits := q.jobs[r.For]
		if !waits || !slices.Contains(q.order, r.For) || slices.ContainsFunc(r.Slots, func(slot int) bool {
			return slot >= q.pool.Pool.MaxNodes
		}) {
			continue
		}
		p := scheduler.Promise{Preempting: true}
		p.ID, p.From, p.Until, p.Company = r.For, r.GiveUp, r.Until, t.companyOf(j)
		for i, slot := range r.Slots {
			p.Spots = append(p.Spots, placementSpot(slot, j.Shape.On(i)))
		}
		all = append(all, p)
	}
	return all
}

// lookAgain is how soon a pool is planned again in which jobs wait and others could leave for them later.
const lookAgain = time.Minute

// nextLeaving is when the queue should be looked at again because somebody may have to leave by then; zero:
// nobody ever may.
func (q queue) nextLeaving() (at time.Time) {
	if !q.rules.Preemption || len(q.order) == 0 {
		return at
	}
	for _, j := range q.holders {
		if q.rules.Priorities.AllowsLeaving(j) && j.State() == job.Running && !j.Ending.Is() &&
			j.Preemptions < q.rules.MostTimes {
			again := q.now.Add(lookAgain)
			if old := j.StartedAt.Add(q.rules.MinRuntime); old.After(q.now) && old.Before(again) {
				again = old
			}
			if at.IsZero() || again.Before(at) {
				at = again
			}
		}
	}
	return at
}
