// Package scheduler decides which waiting jobs start, where, and who has to make room.
//
// A Scheduler is told of every change (Submit, Finish, SetCondition, …) and decides in
// cycles. It keeps the jobs in classes: what has the same tenant, priority, request,
// limit and prediction waits in one line, so that a cycle orders the heads of lines and
// not jobs, and what is refused to one is refused to all behind it. A cycle after one
// change is therefore cheap, and decides exactly what a scheduler decides that is made
// anew from a Snapshot.
//
// What a cycle promises: nothing delays a promised start; a plan to preempt is made only
// where it lets a job start that cannot start otherwise, and no victim in it could be
// left out; a job that no end of other work would let start is never promised anything,
// and nobody is preempted for it. The same state, policy and now give the same decision.
package scheduler

import (
	"cmp"
	"time"

	"github.com/forewarm/forewarm/core/fairshare"
	"github.com/forewarm/forewarm/core/placement"
	"github.com/forewarm/forewarm/core/queue"
)

// Order is a rule of who is served first among jobs of the same priority.
type Order string

// The orders. All but Balanced are those of other systems, to compare with and for those
// who want them.
const (
	// Balanced serves whoever has waited long for how little it asks:
	//
	//	weight · (waited + Softening) / ((predicted + Softening) · GPUs · use)
	//
	// Use is 1 + ShareWeight · how many times its fair share the tenant has had, times how many times as much the job's
	// user has had as the tenant's other users whose jobs wait, if that is more than once.
	// Jobs that ran for long come after those that did not. Whoever has waited for its
	// class's Overdue is promised a start before all others, as many at a time as
	// Promises says, so that nobody waits for ever.
	Balanced          Order = "balanced"
	Arrival           Order = "arrival"            // first come, first served
	Multifactor       Order = "multifactor"        // Slurm's: age, full at seven days, and fair share, alike
	ShortestPredicted Order = "shortest_predicted" // the least predicted GPU-time first
	LeastAttained     Order = "least_attained"     // the least GPU-time so far, in bands, then arrival
)

// Orders are all that there are. The caller owns them.
func Orders() []Order {
	return []Order{Balanced, Arrival, Multifactor, ShortestPredicted, LeastAttained}
}

// Class is a priority class.
type Class struct {
	Level   int           // higher ones are served first, and may preempt lower ones
	Overdue time.Duration // after so long a wait its jobs are promised a start first; 0: the policy's
	Patient bool          // nobody is told to leave for its jobs
}

// Tenant is what a tenant may have.
type Tenant struct {
	Weight  int // of its fair share; below 1 counts as 1
	MostGPU int // at once; 0: no limit
}

// Preemption is who may be told to leave.
type Preemption struct {
	Enabled    bool
	LoseWork   bool          // also jobs that keep no checkpoints; false is what people want
	MinRuntime time.Duration // nobody leaves before it has run for so long
	Grace      time.Duration // between being told and having left
	MostTimes  int           // a job leaves at most so often; 0: 3
	Restart    time.Duration // what a start costs a victim beside the work since its checkpoint
	PerCycle   int           // jobs for which others leave in one cycle; 0: 16
}

// Factors are what counts in the order Multifactor. The zero Factors have both alike, and age full at seven days.
type Factors struct {
	Age     float64       // the weight of how long a job has waited
	Share   float64       // the weight of how little its tenant and user have had
	FullAge time.Duration // at which age counts fully; 0: 7 days
}

// Policy is all that is not in the state and decides, too.
type Policy struct {
	Order       Order
	Classes     map[string]Class // a class that is not here is Class{}
	Tenants     map[string]Tenant
	Placement   placement.Policy
	FairShare   fairshare.Policy
	ShareWeight float64 // how much the use of a tenant, over its share, counts against it in Balanced
	Factors     Factors
	Softening   time.Duration // 0: 10 minutes
	Overdue     time.Duration // 0: two days
	Crowd       float64       // the part of the GPUs beyond which overdue jobs of a class are a crowd; 0: a quarter
	MostExcess  float64       // how many times as much at most counts against a user; 0: 16
	Bands       []int         // GPU-hours after which a job is in the next band; nil: 1, 10, 100
	Promises    int           // waiting jobs that are promised a start, at a time; 0: none
	Easy        bool          // promises are made anew in each cycle, as EASY backfill does, and may move
	MostWaiting int           // jobs in the queue; 0: 100,000
	Rate        queue.Rate    // of submissions, for each user of a tenant
	MaxRuntime  time.Duration // of jobs that name none; 0: 7 days
	Preemption  Preemption
}

// Default is the policy of an installation that configures nothing: nobody leaves.
func Default() Policy {
	return Policy{Order: Balanced, FairShare: fairshare.Default(), ShareWeight: 0.1, Promises: 1}.withDefaults()
}

// Leaving is the policy of an installation whose jobs leave for others if they keep
// checkpoints.
func Leaving() Policy {
	p := Default()
	p.Preemption = Preemption{Enabled: true, MinRuntime: 10 * time.Minute, Grace: time.Minute,
		Restart: 2 * time.Minute, PerCycle: 64}
	return p.withDefaults()
}

func (p Policy) withDefaults() Policy {
	p.Order = cmp.Or(p.Order, Balanced)
	p.Softening = cmp.Or(p.Softening, 10*time.Minute)
	p.Overdue = cmp.Or(p.Overdue, 48*time.Hour)
	if p.Bands == nil {
		p.Bands = []int{1, 10, 100}
	}
	if p.Factors.Age == 0 && p.Factors.Share == 0 {
		p.Factors.Age, p.Factors.Share = 1, 1
	}
	p.Factors.FullAge = cmp.Or(p.Factors.FullAge, 7*24*time.Hour)
	p.Crowd = cmp.Or(p.Crowd, 0.25)
	p.MostExcess = cmp.Or(p.MostExcess, 16)
	p.MostWaiting = cmp.Or(p.MostWaiting, 100_000)
	p.MaxRuntime = cmp.Or(p.MaxRuntime, 7*24*time.Hour)
	p.Preemption.MostTimes = cmp.Or(p.Preemption.MostTimes, 3)
	p.Preemption.PerCycle = cmp.Or(p.Preemption.PerCycle, 16)
	return p
}

// overdue is how long a job of the class waits before it goes first.
func (p Policy) overdue(class string) time.Duration {
	return cmp.Or(p.Classes[class].Overdue, p.Overdue)
}

// band is in which band a job is that has had so much GPU-time.
func (p Policy) band(attained time.Duration, gpus int) int {
	for i, hours := range p.Bands {
		if attained < time.Duration(hours)*time.Hour/time.Duration(max(gpus, 1)) {
			return i
		}
	}
	return len(p.Bands)
}
