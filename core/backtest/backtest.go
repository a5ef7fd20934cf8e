// Package backtest replays a job history against a pre-warming policy, and says
// how long people would have waited and what idling would have cost.
//
// The unit is one GPU, time is in whole seconds, tenants never share GPUs and
// capacity is unlimited unless Options says otherwise. What happens in one second
// happens in this order: jobs end, boots are ready, pending jobs
// start, jobs arrive (each may start at once), policies are asked, and then
// units are booted and released. Everything is deterministic, and a policy is
// told of things only when they have happened.
package backtest

import (
	"errors"
	"fmt"
)

// Job is one job of a history. Times are Unix seconds.
type Job struct {
	ID       string
	Submit   int64
	Duration int64 // seconds it runs once it has its GPUs, at least 1
	GPUs     int
	Tenant   int // index into Trace.Tenants
	// After is the place of the job, counted from 1, to whose end this one is a reaction; 0 if it is none. It is then
	// submitted as long after that end as it would be had nobody waited, which is what Submit tells.
	After int
	Traits
}

// Traits are what a history tells of a job beside its size and times. What is not known is zero.
type Traits struct {
	Class  uint32 // a hash of who runs it and what it is called
	Array  uint32 // a hash of what was submitted as one: an array of jobs, the pods of a Job
	Failed bool   // it ended otherwise than it should; a policy is told at its end
}

// Trace is a history: jobs in the order in which they were submitted.
type Trace struct {
	Tenants []string
	Jobs    []Job
}

// warmUp is the share of the history's time that is simulated but not scored, in
// tenths.
const warmUp = 3

// Window returns the seconds of the first submission, of the end of the warm-up
// and of the last submission. What is scored lies after from and up to last.
func (t Trace) Window() (first, from, last int64) {
	first, last = t.Jobs[0].Submit, t.Jobs[len(t.Jobs)-1].Submit
	return first, first + (last-first)*warmUp/10, last
}

// ErrEmpty says that a trace holds no jobs.
var ErrEmpty = errors.New("the history holds no jobs")

// Validate says what is wrong with the trace, or returns nil.
func (t Trace) Validate() error {
	if len(t.Jobs) == 0 {
		return ErrEmpty
	}
	before := t.Jobs[0].Submit
	for i, j := range t.Jobs {
		switch {
		case j.Submit < before:
			return fmt.Errorf("job %d: submitted before the one that stands before it", i)
		case j.GPUs < 1 || j.GPUs > MaxGPUs:
			return fmt.Errorf("job %d: %d GPUs, want 1 to %d", i, j.GPUs, MaxGPUs)
		case j.Duration < 1:
			return fmt.Errorf("job %d: runs for %d s, want at least 1", i, j.Duration)
		case j.Tenant < 0 || j.Tenant >= len(t.Tenants):
			return fmt.Errorf("job %d: tenant %d of %d", i, j.Tenant, len(t.Tenants))
		case j.After < 0 || j.After > i:
			return fmt.Errorf("job %d: comes after job %d, want one that stands before it", i, j.After-1)
		case j.After > 0 && t.delayOf(i) < 0:
			return fmt.Errorf("job %d: submitted before the end of job %d, after which it comes", i, j.After-1)
		}
		before = j.Submit
	}
	return nil
}

// delayOf is how long after the end of the job that it comes after a job is submitted, in seconds.
func (t Trace) delayOf(job int) int64 {
	before := t.Jobs[t.Jobs[job].After-1]
	return t.Jobs[job].Submit - before.Submit - before.Duration
}

// MaxGPUs is the largest job of a trace.
const MaxGPUs = 1 << 16

// Policy decides how many GPUs one tenant should have. It hears of the tenant's
// jobs as they come and go, and is asked when it wants to be.
type Policy interface {
	// Submit tells that a job arrived, and End that one ended that had started.
	Submit(now int64, j Job)
	End(now int64, j Job, started int64)
	// Next is the second at which Target is to be called next, math.MaxInt64 for
	// never. It is looked at after every event of the tenant.
	Next() int64
	// Target returns the supply target: how many GPUs to have, busy ones and those
	// of waiting jobs included.
	Target(now int64) int
}

// Span is the seconds after From and up to Last.
type Span struct{ From, Last int64 }

// Options shape a run.
type Options struct {
	Boot      int64                     // seconds a unit takes to boot, at least 1
	KeepAlive int64                     // a unit is released only after so many idle seconds
	Capacity  int                       // the most units that a tenant may have; 0 for no limit
	BootNext  func() int64              // seconds that the next unit takes to boot; nil: Boot, each
	KeepReady bool                      // a unit that is ready is not released because another one boots
	Policy    func(tenant int) Policy   // makes the policy of a tenant; nil wants nothing
	Progress  func(done, of int) error  // called now and then with the jobs replayed; an error ends the run
	Waited    func(job int, wait int64) // called for every job that starts, if not nil
	Scored    Span                      // what is scored; zero is what Trace.Window says
	Early     *Outcome                  // gets what the time before the scored one came to, if not nil
}
