package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/forewarm/forewarm/agent/history"
	"github.com/forewarm/forewarm/agent/source"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/ledger"
)

// Options shape a replay.
type Options struct {
	Seed      uint64
	Agent     bool          // false: GPUs are only made when somebody waits for them
	KeepAlive time.Duration // how long a node that nobody holds is kept: at least a second, so that an agent can ask
	Boot      time.Duration // of every node
	PerNode   int           // GPUs of a node
	WaitWorth float64       // see place.Config
	// Progress is told how much of the run is done, 0 to 1; nil tells nobody.
	Progress func(done float64)
}

// WithDefaults fills what is zero: the benchmark's boot of 300 s and single GPUs.
func (o Options) WithDefaults() Options {
	if o.Boot == 0 {
		o.Boot = 300 * time.Second
	}
	if o.PerNode == 0 {
		o.PerNode = 1
	}
	if o.WaitWorth == 0 {
		o.WaitWorth = 32
	}
	o.KeepAlive = max(o.KeepAlive, time.Second)
	return o
}

// run is a replay under way.
type run struct {
	*World
	trace   Trace
	tenants map[string]*tenant
	asked   int              // jobs
	started map[string]start // by allocation
	waits   []time.Duration
	seen    int64 // events of the ledger that were read
}

// start is a job that was asked for.
type start struct {
	tenant *tenant
	job    history.Record
	asked  time.Time
	counts bool // it was submitted in the scored part
}

// endOf is when a job ends that got its GPUs at an instant. One that runs when the
// scored part begins ends when it did.
func (s start) endOf(at time.Time) time.Time {
	if !s.counts {
		return jobEnd(s.job)
	}
	return at.Add(s.job.Duration)
}

// Replay drives a trace through the real system and reports what came of it.
// The same trace and options give the same outcome. When ctx ends first, the
// outcome is that of the part that was replayed, beside ctx's error.
func Replay(ctx context.Context, trace Trace, opt Options) (Outcome, error) {
	r, err := beginRun(ctx, trace, opt.WithDefaults())
	if err != nil {
		return Outcome{}, err
	}
	defer func() { _ = r.store.Close() }() // in memory: nothing to lose
	if err = r.runToEnd(ctx); err != nil && ctx.Err() == nil {
		return Outcome{}, err
	}
	o, failed := r.sumOutcome(context.WithoutCancel(ctx))
	return o, errors.Join(err, failed)
}

// beginRun makes the world in which a trace is to be replayed.
func beginRun(ctx context.Context, trace Trace, opt Options) (*run, error) {
	w, err := newWorld(ctx, trace.From.Add(-opt.settlingTime()), opt)
	if err != nil {
		return nil, err
	}
	r := &run{World: w, trace: trace, tenants: map[string]*tenant{}, started: map[string]start{}}
	if err := r.prepareTenants(ctx); err != nil {
		return nil, errors.Join(err, w.store.Close())
	}
	return r, nil
}

// prepareTenants makes the tenants, teaches their agents the past, and puts the jobs on
// the agenda.
func (r *run) prepareTenants(ctx context.Context) error {
	step := context.WithoutCancel(ctx) // a run ends between its instants
	past := map[string][]source.Item{}
	for _, job := range r.trace.Before {
		if jobEnd(job).After(r.trace.From) {
			job = runningRecord(job)
		}
		past[job.Tenant] = append(past[job.Tenant], source.Item{Record: &job})
	}
	for i, name := range r.trace.tenantNames() {
		if err := ctx.Err(); err != nil {
			return err
		}
		t, err := r.newTenant(step, i, name, maxNodes(r.trace.peakGPUs(name), r.opt.PerNode))
		if err != nil {
			return fmt.Errorf("preparing tenant %s: %w", name, err)
		}
		r.tenants[name] = t
		if t.agent == nil {
			continue
		}
		r.agenda.addEvent(r.trace.From, kindAgent, func() error {
			if err := t.agent.Handle(step, past[name]); err != nil {
				return fmt.Errorf("teaching the agent of %s: %w", name, err)
			}
			return r.runAgent(step, t)
		})
	}
	for _, job := range r.trace.runningJobs() {
		r.agenda.addEvent(r.clock.Now(), kindArrival, func() error { return r.submitJob(step, job) })
	}
	for _, job := range r.trace.Jobs {
		r.agenda.addEvent(job.Submitted, kindArrival, func() error { return r.submitJob(step, job) })
	}
	return nil
}

// maxNodes is how many nodes a tenant's pool may have: more than its jobs ever need,
// so that capacity decides nothing, and few enough that a plan is quick.
func maxNodes(peak, perNode int) int { return 2*peak/perNode + 64 }

// runToEnd moves time from instant to instant until the trace's end and until the
// jobs that wait then have started, or until ctx ends: then the instant that is
// under way is still finished.
func (r *run) runToEnd(ctx context.Context) error {
	whole := r.trace.To.Sub(r.trace.From)
	uncut := context.WithoutCancel(ctx)
	for step := 0; ctx.Err() == nil; step++ {
		at, ok, err := r.nextInstant(uncut)
		if err != nil {
			return err
		}
		if over := at.After(r.trace.To) && (len(r.waits) == r.asked || at.After(r.trace.To.Add(patience))); !ok ||
			over {
			r.clock.Set(laterOf(r.clock.Now(), r.trace.To))
			return nil
		}
		if at.After(r.clock.Now()) {
			r.clock.Set(at)
		}
		if err := r.runInstant(uncut); err != nil {
			return fmt.Errorf("at %s: %w", at.UTC().Format(time.RFC3339), err)
		}
		if r.opt.Progress != nil && step%64 == 0 {
			r.opt.Progress(min(1, float64(at.Sub(r.trace.From))/float64(whole)))
		}
	}
	return ctx.Err()
}

// patience is how long after the trace's end jobs may still wait: much longer
// than anybody does while there is room.
const patience = 24 * time.Hour

func laterOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// nextInstant is the first instant at which something is to happen.
func (r *run) nextInstant(ctx context.Context) (time.Time, bool, error) {
	task, err := r.ledger.NextTask(ctx)
	if err != nil {
		return time.Time{}, false, fmt.Errorf("looking for the next task: %w", err)
	}
	at, ok := r.agenda.nextInstant()
	if !task.IsZero() && (!ok || task.Before(at)) {
		return task, true, nil
	}
	return at, ok, nil
}

// runInstant does everything that is due now: first the work of the ledger, then
// each event with the work that it causes.
func (r *run) runInstant(ctx context.Context) error {
	if err := r.doDueWork(ctx); err != nil {
		return err
	}
	for {
		at, ok := r.agenda.nextInstant()
		if !ok || at.After(r.clock.Now()) {
			return nil
		}
		if err := r.agenda.takeEvent().do(); err != nil {
			return err
		}
		if err := r.doDueWork(ctx); err != nil {
			return err
		}
	}
}

// doDueWork lets the worker do what is due and notices which jobs got their GPUs.
func (r *run) doDueWork(ctx context.Context) error {
	for {
		due, err := r.ledger.NextTask(ctx)
		if err != nil {
			return fmt.Errorf("looking for the next task: %w", err)
		}
		if due.IsZero() || due.After(r.clock.Now()) {
			return r.readJournal(ctx)
		}
		if _, err := r.worker.Step(ctx); err != nil {
			return fmt.Errorf("working: %w", err)
		}
	}
}

// submitJob asks for a job's GPUs as its user would, and lets the agent see the job.
func (r *run) submitJob(ctx context.Context, job history.Record) error {
	t := r.tenants[job.Tenant]
	a, err := t.user.Allocate(ctx, contract.AllocationCreate{Pool: t.pool, GPUs: job.GPUs,
		LeaseSeconds: int64((200 * 24 * time.Hour) / time.Second)}, client.Options{})
	if err != nil {
		return fmt.Errorf("allocating %d GPUs for %s: %w", job.GPUs, job.ID, err)
	}
	s := start{tenant: t, job: job, asked: r.clock.Now(), counts: job.Submitted.After(r.trace.From)}
	r.started[a.ID] = s
	if s.counts {
		r.asked++
	}
	return r.tellAgent(ctx, t, runningRecord(job))
}

// runningRecord is a job as a source tells of it while it lasts.
func runningRecord(job history.Record) history.Record {
	job.Duration, job.State = 0, history.Running
	return job
}

// tellAgent lets a tenant's agent hear of a job, and look in this instant.
func (r *run) tellAgent(ctx context.Context, t *tenant, job history.Record) error {
	if t.agent == nil || r.clock.Now().Before(r.trace.From) {
		return nil
	}
	if err := t.agent.Handle(ctx, []source.Item{{Record: &job}}); err != nil {
		return fmt.Errorf("telling the agent of %s: %w", t.name, err)
	}
	r.scheduleLook(ctx, t, r.clock.Now())
	return nil
}

// scheduleLook has a tenant's agent look at an instant, instead of at the one that it had
// asked for.
func (r *run) scheduleLook(ctx context.Context, t *tenant, at time.Time) {
	if t.next.Equal(at) {
		return
	}
	t.next = at
	r.agenda.addEvent(at, kindAgent, func() error {
		if !t.next.Equal(at) {
			return nil
		}
		t.next = time.Time{}
		return r.runAgent(ctx, t)
	})
}

// runAgent has a tenant's agent look now, and then when it asks to.
func (r *run) runAgent(ctx context.Context, t *tenant) error {
	rep, err := t.agent.Step(ctx)
	if err != nil {
		return fmt.Errorf("stepping the agent of %s: %w", t.name, err)
	}
	if next := rep.Prediction.Now.Next; next.After(r.clock.Now()) {
		r.scheduleLook(ctx, t, next)
	}
	return nil
}

// readJournal reads the journal on: a job that got its GPUs runs, and gives them back
// when it has run its time.
func (r *run) readJournal(ctx context.Context) error {
	var events []ledger.Event
	err := r.store.Read(ctx, func(rd ledger.Reader) error {
		var err error
		events, err = rd.Events(ledger.Scope{All: true}, ledger.EventFilter{After: r.seen}, 500)
		return err
	})
	if err != nil {
		return fmt.Errorf("reading the journal: %w", err)
	}
	for _, e := range events {
		r.seen = e.Seq
		if e.Type != "allocation.active" {
			continue
		}
		s, ok := r.started[e.Subject]
		if !ok {
			return fmt.Errorf("allocation %s became active but was not asked for", e.Subject)
		}
		if s.counts {
			r.waits = append(r.waits, e.At.Sub(s.asked))
		}
		r.agenda.addEvent(s.endOf(e.At), kindEnd, func() error { return r.endJob(ctx, e.Subject, s) })
	}
	if len(events) == 500 {
		return r.readJournal(ctx)
	}
	return nil
}

func (r *run) endJob(ctx context.Context, id string, s start) error {
	if _, err := s.tenant.user.Release(ctx, id); err != nil {
		return fmt.Errorf("releasing %s: %w", id, err)
	}
	delete(r.started, id)
	job := s.job
	job.Ended, job.State = r.clock.Now(), history.Completed
	return r.tellAgent(ctx, s.tenant, job)
}
