package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/placement"
	"github.com/forewarm/forewarm/core/queue"
	"github.com/forewarm/forewarm/core/scheduler"
)

const (
	tenants     = 50
	perNode     = 8
	perRack     = 16
	jobsPerNode = 8 // jobs that are there for each node: 10,000 of 1,250
)

// contest is a cluster for which many jobs wait.
type contest struct {
	rng     *rand.Rand
	policy  scheduler.Policy
	from    scheduler.Snapshot
	s       *scheduler.Scheduler
	now     time.Time
	next    int
	running []string
}

func newContest(jobs int, seed uint64) *contest {
	c := &contest{rng: rand.New(rand.NewPCG(seed, 16)), policy: scheduler.Leaving(),
		now: time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)}
	c.policy.Promises = 16
	c.policy.MostWaiting = 2 * jobs
	c.policy.Rate = queue.Rate{Every: time.Millisecond, Burst: jobs}
	c.policy.Classes = map[string]scheduler.Class{"high": {Level: 1}, "low": {Level: -1}}
	for i := range jobs / jobsPerNode {
		c.from.Nodes = append(c.from.Nodes, c.node(i))
	}
	for range jobs {
		c.from.Waiting = append(c.from.Waiting, c.job(c.now.Add(-time.Duration(c.rng.IntN(86_400))*time.Second)))
	}
	return c
}

// node is one of three kinds, of which a tenth allows several jobs on one GPU.
func (c *contest) node(i int) placement.Node {
	n := placement.Node{ID: fmt.Sprintf("nod_%06d", i), Group: fmt.Sprintf("rack%04d", i/perRack),
		Kind: placement.Kind{Pool: "train", Model: "h100", GPUs: perNode, MemoryMiB: 80 << 10}}
	switch i % 10 {
	case 0:
		n.Kind = placement.Kind{Pool: "shared", Model: "a10", GPUs: perNode, MemoryMiB: 24 << 10, Shared: true}
	case 1, 2:
		n.Kind = placement.Kind{Pool: "train", Model: "a100", GPUs: perNode, MemoryMiB: 40 << 10,
			Labels: placement.NewSet("zone=b")}
	}
	return n
}

// job is one of what clusters see: mostly small, some whole nodes, a few gangs.
func (c *contest) job(submitted time.Time) scheduler.Job {
	limits := []time.Duration{time.Hour, 4 * time.Hour, 12 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour}
	shapes := []capacity.Shape{{Nodes: 1, PerNode: 1}, {Nodes: 1, PerNode: 1}, {Nodes: 1, PerNode: 1},
		{Nodes: 1, PerNode: 1}, {Nodes: 1, PerNode: 2}, {Nodes: 1, PerNode: 2}, {Nodes: 1, PerNode: 4},
		{Nodes: 1, PerNode: 8}, {Nodes: 2, PerNode: 8}, {Nodes: 4, PerNode: 8}}
	c.next++
	j := scheduler.Job{ID: fmt.Sprintf("job_%08d", c.next), Tenant: fmt.Sprintf("org%02d", c.rng.IntN(tenants)),
		User: fmt.Sprintf("usr%d", c.rng.IntN(10)), Class: []string{"", "", "", "high", "low"}[c.rng.IntN(5)],
		MaxRuntime: limits[c.rng.IntN(len(limits))], Eligible: submitted, Preemptible: c.rng.IntN(2) == 0}
	j.Predicted = j.MaxRuntime / time.Duration(1<<c.rng.IntN(4))
	if j.Preemptible {
		j.Checkpoint = time.Hour
	}
	j.Request = placement.Request{Shape: shapes[c.rng.IntN(len(shapes))], Near: placement.PreferOneGroup}
	switch c.rng.IntN(20) {
	case 0:
		j.Request = placement.Request{Part: placement.Part{MemoryMiB: 4 << 10, Compute: 200}}
	case 1:
		j.Request.Pool, j.Request.MemoryMiB = "train", 60<<10
	case 2:
		j.Request.Labels = placement.NewSet("zone=b")
	}
	return j
}

// restore makes the scheduler.
func (c *contest) restore() error {
	var err error
	if c.s, err = scheduler.Restore(c.policy, c.from); err != nil {
		return fmt.Errorf("making the scheduler: %w", err)
	}
	return nil
}

// decide runs a cycle. It returns how many jobs start.
func (c *contest) decide() int {
	d := c.s.Cycle(c.now)
	c.note(d)
	return len(d.Starts)
}

func (c *contest) note(d scheduler.Decision) {
	for _, s := range d.Starts {
		c.running = append(c.running, s.Job)
	}
	for _, p := range d.Plans {
		for _, v := range p.Victims {
			c.s.Requeue(v.Job, c.now, time.Time{})
		}
	}
}

// change does one thing a second later and times it with the cycle after it: mostly a
// job ends or comes, sometimes a node is drained, taken back or new, or a job is cancelled.
func (c *contest) change() (time.Duration, error) {
	c.now = c.now.Add(time.Second)
	j := c.job(c.now)
	node := c.from.Nodes[c.rng.IntN(len(c.from.Nodes))].ID
	at := c.rng.IntN(len(c.running))
	kind := c.rng.IntN(20)
	begun := time.Now()
	switch {
	case kind == 0:
		c.s.SetCondition(node, placement.Condition{Drained: c.rng.IntN(2) == 0, Celsius: 50 + c.rng.IntN(40)}, c.now)
	case kind == 1:
		if err := c.s.Submit(j, c.now); err != nil {
			return 0, fmt.Errorf("submitting: %w", err)
		}
		if !c.s.Cancel(j.ID) {
			return 0, errors.New("a job that waits could not be cancelled")
		}
	case kind == 2:
		c.from.Nodes = append(c.from.Nodes, c.node(len(c.from.Nodes)))
		if err := c.s.AddNodes(c.from.Nodes[len(c.from.Nodes)-1]); err != nil {
			return 0, fmt.Errorf("adding a node: %w", err)
		}
	case kind < 10:
		if err := c.s.Submit(j, c.now); err != nil {
			return 0, fmt.Errorf("submitting: %w", err)
		}
	default:
		c.s.Finish(c.running[at], c.now)
		c.running[at] = c.running[len(c.running)-1]
		c.running = c.running[:len(c.running)-1]
	}
	d := c.s.Cycle(c.now)
	took := time.Since(begun)
	c.note(d)
	return took, nil
}

// check restores the scheduler from its own snapshot, which fails where a GPU is in two
// hands, and compares what both decide.
func (c *contest) check() error {
	anew, err := scheduler.Restore(c.policy, c.s.Snapshot())
	if err != nil {
		return fmt.Errorf("checking the state: %w", err)
	}
	c.now = c.now.Add(time.Second)
	want, got := anew.Cycle(c.now), c.s.Cycle(c.now)
	if fmt.Sprintf("%+v", want) != fmt.Sprintf("%+v", got) {
		return errors.New("a scheduler made from the state decides otherwise than the one that kept it")
	}
	return nil
}
