// Package coldstart tells from the job history of an elastic cluster which GPU
// jobs waited for a node to boot, and what other ways of keeping nodes up would
// have saved and cost.
//
// A history says when jobs ran and on which nodes, never when a node had power.
// So that is inferred: a node that nothing ran on for longer than the cluster's
// suspend time had been powered down. Everything here is pure and deterministic;
// the order of the jobs does not matter. Times are Unix seconds.
package coldstart

import (
	"errors"
	"fmt"
)

// Hold is what the cluster itself said kept a job from starting.
type Hold int

// What a history can tell. Of most waits it tells nothing.
const (
	Unsaid     Hold = iota
	Dependency      // another job, a begin time, a user's hold
	Limit           // of an account, a QOS, a partition, an array or licences
)

// Job is one run of a job. A job that was requeued has several.
type Job struct {
	ID         string
	Submit     int64
	Ready      int64 // when nothing but the cluster itself kept it: the later of submission and eligibility
	Start, End int64 // End is 0 while it runs
	Nodes      []string
	GPUs       int    // on all nodes together; 0: it uses its nodes, but is no GPU start
	Partition  string // that it ran in; nodes of one partition can stand for each other
	Model      string // of its GPUs; empty when not said
	Hold       Hold
	// Own is Forewarm's own work. It keeps its nodes up, and is never demand.
	Own bool
}

// Never is the suspend time of nodes that always have power.
const Never = -1

// Assumptions are what a history does not tell.
type Assumptions struct {
	// SuspendTime is how many seconds a node is unused before it is powered down,
	// and NodeSuspendTime that of nodes which differ; Never for those that stay up.
	SuspendTime     int64
	NodeSuspendTime map[string]int64
	// BootLimit is how long a boot may take: Slurm's ResumeTimeout. What a job
	// waited beyond it, it waited for something else.
	BootLimit int64
	// Boot is how long a job waits for a boot; 0: the median of what is seen.
	Boot int64
}

// prompt is the longest wait that counts as none: a scheduler looks at its queue
// every few seconds, and no node boots within so short a time.
const prompt = 5

// Validate says what is wrong with the assumptions, or returns nil.
func (a Assumptions) Validate() error {
	switch {
	case a.SuspendTime < Never:
		return fmt.Errorf("a suspend time of %d s cannot be", a.SuspendTime)
	case a.BootLimit < 1:
		return fmt.Errorf("a boot limit of %d s cannot be", a.BootLimit)
	case a.Boot < 0:
		return fmt.Errorf("a boot of %d s cannot be", a.Boot)
	default:
		return nil
	}
}

// suspendTime is that of one node.
func (a Assumptions) suspendTime(node string) int64 {
	if own, differs := a.NodeSuspendTime[node]; differs {
		return own
	}
	return a.SuspendTime
}

// Period is what is reported: starts from From on and before Until. The history
// goes back to Begin: what ran before that is not known.
type Period struct{ Begin, From, Until int64 }

// ErrPeriod says that a period ends before it begins.
var ErrPeriod = errors.New("the period ends before it begins")

func (p Period) validate() error {
	if p.From < p.Begin || p.Until <= p.From {
		return ErrPeriod
	}
	return nil
}

func (p Period) contains(at int64) bool { return at >= p.From && at < p.Until }

func (j Job) validate() error {
	switch {
	case j.Ready < j.Submit, j.Start < j.Ready, j.End != 0 && j.End < j.Start:
		return errors.New("its times are out of order")
	case len(j.Nodes) == 0:
		return errors.New("it has no node")
	case j.GPUs < 0:
		return fmt.Errorf("it has %d GPUs", j.GPUs)
	default:
		return nil
	}
}
