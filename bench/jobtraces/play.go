package main

import (
	"container/heap"
	"fmt"
	"slices"
	"time"

	jobs "github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/scheduler"
)

// play is one run of the workload under one policy.
type play struct {
	*workload
	arm        arm
	checkpoint time.Duration
	s          *scheduler.Scheduler
	p          predictor
	byID       map[string]int
	left       []int64 // seconds of work that each job still has
	began      []int64 // when its attempt began
	ended      []int64
	attempts   []int
	states     []jobs.State
	ends       endings
	next       int // job to be submitted
	now        int64
	looked     int64 // when the last cycle was
	score      score
	err        error // the first thing that cannot happen
}

// ending is when an attempt would end. It is void if the job has left since.
type ending struct {
	at      int64
	job     int
	attempt int
}

type endings []ending

func (e endings) Len() int           { return len(e) }
func (e endings) Less(i, j int) bool { return e[i].at < e[j].at }
func (e endings) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }

// Push adds an ending, for package heap.
func (e *endings) Push(x any) { *e = append(*e, x.(ending)) }

// Pop takes out the last one, for package heap.
func (e *endings) Pop() any {
	all := *e
	x := all[len(all)-1]
	*e = all[:len(all)-1]
	return x
}

// Above so many waiting jobs, cycles are a minute apart, as schedulers do under load.
const (
	crowd = 150
	pause = 60
)

func (w *workload) play(a arm, checkpoint time.Duration) (score, error) {
	a.policy.MostWaiting = len(w.jobs) + 1
	s, err := scheduler.New(a.policy, w.nodes)
	if err != nil {
		return score{}, fmt.Errorf("building the cluster: %w", err)
	}
	p := &play{workload: w, arm: a, checkpoint: checkpoint, s: s, p: predictor{recent: map[likeness][]int64{}},
		byID: map[string]int{}, left: make([]int64, len(w.jobs)), began: make([]int64, len(w.jobs)),
		ended: make([]int64, len(w.jobs)), attempts: make([]int, len(w.jobs)),
		states: slices.Repeat([]jobs.State{jobs.Pending}, len(w.jobs))}
	for i, j := range w.jobs {
		p.byID[j.ID], p.left[i] = i, j.Duration
	}
	for p.next < len(w.jobs) || p.ends.Len() > 0 {
		if err := p.step(); err != nil {
			return score{}, err
		}
	}
	if s.Waiting() > 0 {
		return score{}, fmt.Errorf("%d jobs never started", s.Waiting())
	}
	if p.err != nil {
		return score{}, p.err
	}
	return p.judge(), nil
}

// apply takes a job through its state machine, which refuses what cannot happen: a start
// of what runs, a second end.
func (p *play) apply(i int, events ...jobs.Event) {
	for _, e := range events {
		next, err := jobs.Machine.Next(p.states[i], e)
		if err != nil && p.err == nil {
			p.err = fmt.Errorf("job %s: %w", p.jobs[i].ID, err)
		}
		p.states[i] = next
	}
}

// step goes on to the next moment at which something happens, and decides.
func (p *play) step() error {
	p.now = p.nextMoment()
	for p.ends.Len() > 0 && p.ends[0].at <= p.now {
		p.end(heap.Pop(&p.ends).(ending))
	}
	for ; p.next < len(p.jobs) && p.jobs[p.next].Submit <= p.now; p.next++ {
		if err := p.submit(p.next); err != nil {
			return err
		}
	}
	if p.s.Waiting() > crowd && p.now < p.looked+pause && (p.next < len(p.jobs) || p.ends.Len() > 0) {
		return nil
	}
	p.looked = p.now
	for p.decide() {
	}
	return nil
}

func (p *play) nextMoment() int64 {
	at := int64(1) << 62
	if p.next < len(p.jobs) {
		at = p.jobs[p.next].Submit
	}
	if p.ends.Len() > 0 {
		at = min(at, p.ends[0].at)
	}
	return max(at, p.now)
}

func (p *play) submit(i int) error {
	j := p.jobs[i]
	x := scheduler.Job{ID: j.ID, Tenant: p.tenants[j.Tenant], Request: j.request, MaxRuntime: seconds(j.limit),
		Predicted: p.p.predict(j), Eligible: time.Unix(j.Submit, 0), Preemptible: p.arm.preemptible}
	if p.arm.oracle {
		x.Predicted = seconds(j.Duration)
	}
	if p.arm.checkpoints {
		x.Checkpoint = p.checkpoint
	}
	return p.s.Submit(x, time.Unix(p.now, 0))
}

func (p *play) end(e ending) {
	if p.attempts[e.job] != e.attempt || p.left[e.job] == 0 {
		return // it has left, and ends another time
	}
	p.apply(e.job, jobs.Complete)
	p.left[e.job], p.ended[e.job] = 0, p.now
	p.s.Finish(p.jobs[e.job].ID, time.Unix(p.now, 0))
	p.p.observe(p.jobs[e.job])
}

// decide runs a cycle. It returns whether somebody has left, so that another is due.
func (p *play) decide() bool {
	d := p.s.Cycle(time.Unix(p.now, 0))
	for _, s := range d.Starts {
		i := p.byID[s.Job]
		p.apply(i, jobs.Schedule, jobs.Start)
		p.attempts[i]++
		p.began[i] = p.now
		heap.Push(&p.ends, ending{p.now + p.overhead(i) + p.left[i], i, p.attempts[i]})
	}
	for _, plan := range d.Plans {
		for _, v := range plan.Victims {
			p.leave(p.byID[v.Job])
		}
	}
	return len(d.Plans) > 0
}

// overhead is what an attempt costs before it goes on with its work.
func (p *play) overhead(i int) int64 {
	if p.attempts[i] <= 1 {
		return 0
	}
	return int64(restart.Seconds())
}

// leave takes a job off its GPUs: it goes on at its last checkpoint when it comes back.
func (p *play) leave(i int) {
	ran := max(p.now-p.began[i]-p.overhead(i), 0)
	kept := int64(0)
	if p.arm.checkpoints {
		every := max(int64(p.checkpoint.Seconds()), 1)
		kept = ran / every * every
	}
	kept = min(kept, p.left[i]-1)
	p.left[i] -= kept
	p.score.lost += float64(ran-kept+int64(restart.Seconds())) * float64(p.jobs[i].GPUs) / 3600
	p.score.left++
	p.apply(i, jobs.Preempt, jobs.Requeue)
	p.attempts[i]++ // the ending of this attempt is void
	p.s.Requeue(p.jobs[i].ID, time.Unix(p.now, 0), time.Time{})
}
