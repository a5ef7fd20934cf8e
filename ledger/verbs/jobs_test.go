package verbs_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
)

// newSubmitter is a member with a key that there is: what they submit starts later, in its name.
func (w *world) newSubmitter(name string) ledger.Actor {
	w.Helper()
	return w.giveKey(w.newPerson(name), name)
}

// giveKey makes a key of a person, as jobs start in the name of one.
func (w *world) giveKey(who ledger.Actor, name string) ledger.Actor {
	w.Helper()
	made, err := w.ledger.CreateKey(w.Context(), operator, ledger.Key{ID: "key_" + name, Name: name,
		OrganizationID: who.OrganizationID, Kind: ledger.PersonKey, Role: ledger.Member, Hash: []byte{1}})
	require.NoError(w, err)
	who.KeyID = made.ID
	return who
}

// jobOf is a command for an hour on so many GPUs.
func jobOf(gpus int, change func(*ledger.JobCommand)) ledger.JobCommand {
	c := ledger.JobCommand{Needs: ledger.AllocateRequest{Pool: "lab", GPUs: gpus}, Job: job.Job{Priority: job.Normal,
		Command: job.Command{Arguments: []string{"true"}}, MaxRuntime: time.Hour, Grace: 30 * time.Second,
		Retries: job.Retries{Lost: 3}}}
	if change != nil {
		change(&c)
	}
	return c
}

func (w *world) submit(who ledger.Actor, c ledger.JobCommand) job.Job {
	w.Helper()
	got, err := w.ledger.SubmitJobs(w.Context(), who, c)
	require.NoError(w, err)
	return got[0]
}

func (w *world) readJob(id string) (j job.Job) {
	w.Helper()
	require.NoError(w, w.store.Read(w.Context(), func(r ledger.Reader) (err error) {
		j, err = r.Job(ledger.Scope{All: true}, id)
		return err
	}))
	return j
}

// daemons are those of all nodes that are ready.
func (w *world) daemons() map[string]ledger.Actor {
	all := map[string]ledger.Actor{}
	for _, n := range w.readNodes(node.Ready) {
		all[n.ID] = w.lookAt(n.ID).daemon
	}
	return all
}

func (w *world) settle(daemon ledger.Actor, said ledger.NodeReport) ledger.NodeOrders {
	w.Helper()
	told, err := w.ledger.SettleNode(w.Context(), daemon, said)
	require.NoError(w, err)
	return told
}

// proveClean has a daemon say that nothing is left of an allocation's work.
func (w *world) proveClean(daemon ledger.Actor, said ledger.Cleaned) {
	w.Helper()
	w.settle(daemon, ledger.NodeReport{Isolation: capacity.IsolationUser, Cleaned: []ledger.Cleaned{said}})
}

func (w *world) orders(daemon ledger.Actor, known ...ledger.JobAttempt) []ledger.JobOrder {
	w.Helper()
	said := ledger.NodeReport{Isolation: capacity.IsolationUser}
	for _, k := range known {
		said.Jobs = append(said.Jobs, ledger.JobReport{JobID: k.JobID, Attempt: k.Attempt})
	}
	return w.settle(daemon, said).Start
}

func (w *world) report(daemon ledger.Actor, o ledger.JobOrder, end *job.End) []ledger.JobAttempt {
	w.Helper()
	said := ledger.JobReport{JobID: o.Job.ID, Attempt: o.Job.Attempt, Rank: o.Rank}
	if end != nil {
		said.Ended, said.End = true, *end
	}
	return w.settle(daemon, ledger.NodeReport{Isolation: capacity.IsolationUser, Jobs: []ledger.JobReport{said}}).Forget
}

func failedWith(code int) *job.End { return &job.End{Code: job.Exit, ExitCode: code, Ran: true} }

var succeeded = &job.End{Ran: true}

func TestAJobRunsOnceAndGivesItsGPUsBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	j := w.submit(ann, jobOf(1, nil))
	require.Equal(t, job.Pending, j.State())
	w.doDueWork()
	require.Equal(t, job.Scheduled, w.readJob(j.ID).State(), "it has a place, and waits for the boot")
	w.pass(boot)
	all := w.daemons()
	require.Len(t, all, 1)
	for _, daemon := range all {
		for range 3 { // a daemon that did not get the answer asks again
			require.Len(t, w.orders(daemon), 1)
		}
		o := w.orders(daemon)[0]
		require.Equal(t, []string{"true"}, o.Job.Command.Arguments)
		require.Contains(t, w.readAllocation(o.Allocation.ID).Opened, daemon.NodeID, "its hold is open before it starts")
		require.Empty(t, w.orders(daemon, ledger.JobAttempt{JobID: j.ID, Attempt: 1}), "a daemon that knows it")
		require.Empty(t, w.report(daemon, o, nil))
		require.Equal(t, job.Running, w.readJob(j.ID).State())
		w.clock.Set(w.clock.Now().Add(time.Minute))
		for range 3 { // and reports again
			require.Equal(t, []ledger.JobAttempt{{JobID: j.ID, Attempt: 1}}, w.report(daemon, o, succeeded))
		}
		require.Empty(t, w.orders(daemon), "it ran")
	}
	done := w.readJob(j.ID)
	require.Equal(t, job.Completed, done.State())
	require.Equal(t, 1, done.Attempt)
	require.Equal(t, time.Minute, done.GPUTime)
	require.Positive(t, done.Cost)
	require.Equal(t, allocation.Released, w.readAllocation(done.AllocationID).State())
	require.Len(t, w.readEvents("job.completed"), 1)
	w.pass(time.Hour)
	require.Equal(t, done, w.readJob(j.ID), "nothing happens to what is over")
}

func TestAGangBeginsAndEndsAsOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	j := w.submit(w.newSubmitter("ann"), jobOf(0, func(c *ledger.JobCommand) {
		c.Needs.Layout = capacity.Layout{Nodes: 2, PerNode: 2}
		c.Job.Retries.Failed = 1
	}))
	w.pass(boot)
	all := w.daemons()
	require.Len(t, all, 2)
	var orders []ledger.JobOrder
	var daemons []ledger.Actor
	for _, daemon := range all {
		orders, daemons = append(orders, w.orders(daemon)...), append(daemons, daemon)
	}
	require.Len(t, orders, 2)
	require.ElementsMatch(t, []int{0, 1}, []int{orders[0].Rank, orders[1].Rank})
	w.report(daemons[0], orders[0], nil)
	require.Equal(t, job.Scheduled, w.readJob(j.ID).State(), "one of two has begun")
	w.report(daemons[1], orders[1], nil)
	require.Equal(t, job.Running, w.readJob(j.ID).State())
	w.report(daemons[1], orders[1], failedWith(3))
	again := w.readJob(j.ID)
	require.Equal(t, job.Pending, again.State(), "it is tried again")
	require.Equal(t, allocation.Released, w.readAllocation(again.AllocationID).State())
	require.NotEmpty(t, w.report(daemons[0], orders[0], failedWith(137)), "which nobody waited for")
	require.Equal(t, again, w.readJob(j.ID))
	for i, daemon := range daemons { // they clean up, and the job comes back
		w.proveClean(daemon, ledger.Cleaned{AllocationID: orders[i].Allocation.ID, Proof: "nothing is left"})
	}
	w.pass(time.Minute)
	for _, daemon := range daemons {
		for _, o := range w.orders(daemon) {
			require.Equal(t, 2, o.Job.Attempt)
			w.report(daemon, o, nil)
			w.report(daemon, o, succeeded)
		}
	}
	require.Equal(t, job.Completed, w.readJob(j.ID).State())
}

// Trap d of the seeds: the node of a job is lost, and the job runs elsewhere.
func TestAJobOutlivesItsNode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.look = 10 * time.Second
	j := w.submit(w.newSubmitter("ann"), jobOf(2, nil))
	w.pass(boot)
	for id, daemon := range w.daemons() {
		w.report(daemon, w.orders(daemon)[0], nil)
		delete(w.up, id)
	}
	w.pass(20 * time.Second) // until its provider is asked again
	lost := w.readEvents("job.pending")
	require.Len(t, lost, 1)
	require.Equal(t, job.Lost, lost[0].Reason)
	w.pass(boot + 30*time.Second)
	for _, daemon := range w.daemons() {
		for _, o := range w.orders(daemon) {
			require.Equal(t, 2, o.Job.Attempt)
			w.report(daemon, o, nil)
			w.report(daemon, o, succeeded)
		}
	}
	require.Equal(t, job.Completed, w.readJob(j.ID).State())
}

// Trap l: cancelling what waits, what runs and what is over.
func TestCancellingAJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann, bob := w.newSubmitter("ann"), w.newSubmitter("bob")
	waits := w.submit(ann, jobOf(1, func(c *ledger.JobCommand) { c.Held = true }))
	runs := w.submit(ann, jobOf(1, nil))
	w.pass(boot)
	for _, id := range []string{waits.ID, runs.ID} { // no daemon has said that it begins
		_, err := w.ledger.CancelJob(t.Context(), bob, id)
		require.ErrorIs(t, err, ledger.ErrNotFound, "another organization's")
		got, err := w.ledger.CancelJob(t.Context(), ann, id)
		require.NoError(t, err)
		require.Equal(t, job.Cancelled, got.State())
		var state *ledger.StateError
		_, err = w.ledger.CancelJob(t.Context(), ann, id)
		require.ErrorAs(t, err, &state)
	}
	require.Equal(t, allocation.Released, w.readAllocation(w.readJob(runs.ID).AllocationID).State())
}

func TestADiamondOfDependencies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	after := func(condition job.Condition, on ...job.Job) ledger.JobCommand {
		return jobOf(1, func(c *ledger.JobCommand) {
			for _, o := range on {
				c.Job.Dependencies = append(c.Job.Dependencies, job.Depends{JobID: o.ID, Condition: condition})
			}
		})
	}
	top := w.submit(ann, jobOf(1, nil))
	left, right := w.submit(ann, after(job.AfterOK, top)), w.submit(ann, after(job.AfterOK, top))
	bottom := w.submit(ann, after(job.AfterOK, left, right))
	never := w.submit(ann, after(job.AfterNotOK, top))
	_, err := w.ledger.SubmitJobs(t.Context(), w.newSubmitter("bob"), after(job.AfterOK, top))
	var invalid *ledger.InvalidError
	require.ErrorAs(t, err, &invalid, "a job of others is none")
	w.pass(boot)
	var order []string
	for range 20 {
		w.pass(time.Minute)
		for _, daemon := range w.daemons() {
			for _, o := range w.orders(daemon) {
				order = append(order, o.Job.ID)
				w.report(daemon, o, nil)
				w.report(daemon, o, succeeded)
				w.proveClean(daemon, ledger.Cleaned{AllocationID: o.Allocation.ID, Proof: "nothing is left"})
			}
		}
	}
	require.Len(t, order, 4)
	require.Equal(t, top.ID, order[0])
	require.ElementsMatch(t, []string{left.ID, right.ID}, order[1:3])
	require.Equal(t, bottom.ID, order[3])
	require.Equal(t, job.Failed, w.readJob(never.ID).State())
	require.Equal(t, job.Dependency, w.readJob(never.ID).Reason)
}

// Trap e: what no pool could ever hold is refused, and what has to wait holds up nobody.
func TestWhoHasToWaitHoldsUpNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	_, err := w.ledger.SubmitJobs(t.Context(), ann, jobOf(9, nil))
	var refused *ledger.RefusedError
	require.ErrorAs(t, err, &refused)
	_, err = w.ledger.SubmitJobs(t.Context(), ann, jobOf(1, func(c *ledger.JobCommand) {
		c.Job.MaxRuntime = 48 * time.Hour
	}))
	var invalid *ledger.InvalidError
	require.ErrorAs(t, err, &invalid, "longer than leases of the pool")
	w.mustAllocate(ann, 2)
	large := w.submit(ann, jobOf(8, nil))
	small := w.submit(ann, jobOf(2, nil))
	w.doDueWork()
	require.Equal(t, job.Pending, w.readJob(large.ID).State())
	require.Equal(t, job.Scheduled, w.readJob(small.ID).State())
}

// Trap a: more jobs than GPUs, and runs of the scheduler that know nothing of each other.
func TestSchedulersRaceForTheSameGPUs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	got, err := w.ledger.SubmitJobs(t.Context(), ann, jobOf(1, func(c *ledger.JobCommand) {
		for i := range 16 {
			c.Indices = append(c.Indices, i)
		}
	}))
	require.NoError(t, err)
	require.Len(t, got, 16)
	other := w.restartedLedger()
	done := make(chan error)
	for _, l := range []*verbs.Ledger{w.ledger, other, w.ledger, other} {
		go func() { done <- l.ScheduleJobs(t.Context(), w.pool.ID) }()
	}
	for range 4 {
		require.NoError(t, <-done)
	}
	states, slots := map[job.State]int{}, map[string]int{}
	for _, j := range got {
		is := w.readJob(j.ID)
		states[is.State()]++
		require.LessOrEqual(t, is.Attempt, 1)
		if is.HasGPUs() {
			slots[fmt.Sprint(w.readAllocation(is.AllocationID).Slots)]++
		}
	}
	require.Equal(t, map[job.State]int{job.Scheduled: 8, job.Pending: 8}, states)
	require.Len(t, slots, 4)
	for _, n := range slots {
		require.Equal(t, 2, n)
	}
}

// A key that is revoked starts nothing more.
func TestJobsOfARevokedKeyDoNotStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	j := w.submit(ann, jobOf(1, nil))
	_, err := w.ledger.RevokeKey(t.Context(), operator, ann.KeyID)
	require.NoError(t, err)
	w.doDueWork()
	require.Equal(t, job.Failed, w.readJob(j.ID).State())
	require.Equal(t, job.KeyRevoked, w.readJob(j.ID).Reason)
}

func TestAJobThatNoDaemonStartsIsGivenUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	j := w.submit(w.newSubmitter("ann"), jobOf(1, func(c *ledger.JobCommand) { c.Job.Retries = job.Retries{} }))
	w.pass(boot + time.Minute)
	require.Equal(t, job.Scheduled, w.readJob(j.ID).State())
	w.pass(6 * time.Minute)
	require.Equal(t, job.Failed, w.readJob(j.ID).State())
	require.Equal(t, job.Unserved, w.readJob(j.ID).Reason)
}
