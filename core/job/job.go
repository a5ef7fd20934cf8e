// Package job is the state machine of jobs: which events are possible in which state.
package job

import "github.com/forewarm/forewarm/core/statemachine"

// State is where a job is in its life.
type State string

// The states of a job.
const (
	Pending   State = "pending"   // it waits for GPUs
	Held      State = "held"      // it waits until somebody lets it
	Scheduled State = "scheduled" // it has GPUs, and its processes are being started
	Running   State = "running"   // all of its processes run
	Preempted State = "preempted" // it was told to leave, and has its grace
	Completed State = "completed" // it ended by itself, with success
	Failed    State = "failed"    // it ended otherwise, and is not tried again
	Cancelled State = "cancelled" // somebody ended it
)

// Event is what happens to a job.
type Event string

// The events of a job.
const (
	Schedule Event = "schedule"
	Start    Event = "start"
	Complete Event = "complete"
	Fail     Event = "fail"
	Cancel   Event = "cancel"
	Preempt  Event = "preempt"
	Requeue  Event = "requeue" // it has left its GPUs, and is tried again
	Shelve   Event = "shelve"  // it has left its GPUs, and is held
	Hold     Event = "hold"
	Release  Event = "release"
)

// Machine is the table of a job's transitions. A job that ends within its grace has
// ended, and does not come back.
var Machine = statemachine.Table[State, Event]{
	Name:    "job",
	Initial: []State{Pending, Held},
	States:  []State{Pending, Held, Scheduled, Running, Preempted, Completed, Failed, Cancelled},
	Transitions: []statemachine.Transition[State, Event]{
		{From: Pending, Event: Schedule, To: Scheduled},
		{From: Pending, Event: Hold, To: Held},
		{From: Pending, Event: Fail, To: Failed},
		{From: Pending, Event: Cancel, To: Cancelled},
		{From: Held, Event: Release, To: Pending},
		{From: Held, Event: Fail, To: Failed},
		{From: Held, Event: Cancel, To: Cancelled},
		{From: Scheduled, Event: Start, To: Running},
		{From: Scheduled, Event: Requeue, To: Pending},
		{From: Scheduled, Event: Shelve, To: Held},
		{From: Scheduled, Event: Fail, To: Failed},
		{From: Scheduled, Event: Cancel, To: Cancelled},
		{From: Running, Event: Complete, To: Completed},
		{From: Running, Event: Preempt, To: Preempted},
		{From: Running, Event: Requeue, To: Pending},
		{From: Running, Event: Shelve, To: Held},
		{From: Running, Event: Fail, To: Failed},
		{From: Running, Event: Cancel, To: Cancelled},
		{From: Preempted, Event: Requeue, To: Pending},
		{From: Preempted, Event: Shelve, To: Held},
		{From: Preempted, Event: Complete, To: Completed},
		{From: Preempted, Event: Fail, To: Failed},
		{From: Preempted, Event: Cancel, To: Cancelled},
	},
}
