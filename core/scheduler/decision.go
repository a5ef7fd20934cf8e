package scheduler

import (
	"time"

	"github.com/forewarm/forewarm/core/placement"
)

// Start is a job that begins now.
type Start struct {
	Job   string
	Spots placement.Placement
	Until time.Time
	// Claims is the reservation of which it has its GPUs; empty: none.
	Claims string
}

// Promise is a start in the future.
type Promise struct {
	placement.Promised
	Preempting bool // others were told to leave for it
}

// Victim is a running job that has to leave.
type Victim struct {
	Job  string
	GPUs int
	Cost time.Duration // GPU-time that is lost
}

// Plan is who leaves for whom. Without any one of the victims the job could not start.
type Plan struct {
	For     string
	Victims []Victim
	LeaveBy time.Time
}

// Awaited is a job for which nobody is told to leave, because running jobs are predicted
// to end within the grace that they would be given.
type Awaited struct {
	For  string
	Ends []string
}

// Blocker is why a job waits.
type Blocker string

// The blockers beside those of package placement.
const (
	TenantLimit Blocker = "tenant_limit"
	GroupLimit  Blocker = "group_limit"
	Preempting  Blocker = "preempting" // others are leaving for it
)

// Blocked is why jobs of one shape and limit wait, with the first of them.
type Blocked struct {
	Job     string
	Request placement.Request
	Limit   time.Duration
	Blocker Blocker
	placement.Refusal
}

// Decision is what a cycle decided, in the order in which it did.
type Decision struct {
	At       time.Time
	Starts   []Start
	Promised []Promise // new ones, and those that moved: only ever to an earlier start, but for Broken ones
	Broken   []string  // jobs whose promise cannot be kept, because a node fails them or a limit fell
	Plans    []Plan
	Awaited  []Awaited
	Blocked  []Blocked
}
