package tasks

import (
	"strconv"
	"time"

	"github.com/forewarm/forewarm/contract"
	forewarmv1 "github.com/forewarm/forewarm/contract/proto/forewarm/v1"
)

// states are those of jobs.
var states = map[string]forewarmv1.TaskState{
	contract.JobPending:   forewarmv1.TaskState_TASK_STATE_PENDING,
	contract.JobHeld:      forewarmv1.TaskState_TASK_STATE_HELD,
	contract.JobScheduled: forewarmv1.TaskState_TASK_STATE_SCHEDULED,
	contract.JobRunning:   forewarmv1.TaskState_TASK_STATE_RUNNING,
	contract.JobPreempted: forewarmv1.TaskState_TASK_STATE_PREEMPTED,
	contract.JobCompleted: forewarmv1.TaskState_TASK_STATE_COMPLETED,
	contract.JobFailed:    forewarmv1.TaskState_TASK_STATE_FAILED,
	contract.JobCancelled: forewarmv1.TaskState_TASK_STATE_CANCELLED,
}

// priorities are those of jobs.
var priorities = map[forewarmv1.TaskPriority]string{
	forewarmv1.TaskPriority_TASK_PRIORITY_UNSPECIFIED: "",
	forewarmv1.TaskPriority_TASK_PRIORITY_LOW:         "low",
	forewarmv1.TaskPriority_TASK_PRIORITY_NORMAL:      "normal",
	forewarmv1.TaskPriority_TASK_PRIORITY_HIGH:        "high",
}

func encodePriority(name string) forewarmv1.TaskPriority {
	for p, n := range priorities {
		if n == name {
			return p
		}
	}
	return forewarmv1.TaskPriority_TASK_PRIORITY_UNSPECIFIED
}

func encodeTask(j contract.Job) *forewarmv1.Task {
	out := &forewarmv1.Task{Id: j.ID, TaskId: j.Name, UserId: j.Environment[userLabel], State: states[j.State],
		Reason: j.Reason, Message: j.Detail, OrganizationId: j.OrganizationID, Pool: j.PoolName, Gpus: int32Of(j.GPUs),
		Priority: encodePriority(j.Priority), Command: j.Command, Attempt: int32Of(j.Attempt),
		AllocationId: j.AllocationID, Position: int32Of(j.Position), Signal: j.Signal, GpuSeconds: j.GPUSeconds,
		SubmittedAtMs: millis(j.SubmittedAt), ScheduledAtMs: millis(j.ScheduledAt), StartedAtMs: millis(j.StartedAt),
		EndedAtMs: millis(j.EndedAt)}
	if j.ExitCode != nil {
		code := int32Of(*j.ExitCode)
		out.ExitCode = &code
	}
	return out
}

// millis is a time on the wire; 0: there is none.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// int32Of is a number that has bounds far below those of its type.
func int32Of(n int) int32 { return int32(n) } //nolint:gosec // see above

func int32Pointer(n *int) *int32 {
	if n == nil {
		return nil
	}
	out := int32Of(*n)
	return &out
}

func int64Pointer(n *int) *int64 {
	if n == nil {
		return nil
	}
	out := int64(*n)
	return &out
}

func formatInt(n int64) string { return strconv.FormatInt(n, 10) }
