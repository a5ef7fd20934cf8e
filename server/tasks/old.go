package tasks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"connectrpc.com/connect"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/contract/proto/compat/algogpu"
	"github.com/forewarm/forewarm/contract/proto/compat/algogpu/algogpuconnect"
	forewarmv1 "github.com/forewarm/forewarm/contract/proto/forewarm/v1"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/server/problem"
)

// NewOldHandler returns the handler of go-scheduler's service: each call is one of TaskService.
func NewOldHandler(c Config) http.Handler {
	_, h := algogpuconnect.NewGPUSchedulerHandler(&oldService{service{c}}, connect.WithReadMaxBytes(MostMessage))
	return h
}

type oldService struct{ service }

// typeLabel is the variable that has the type of a task.
const typeLabel = "FOREWARM_TASK_TYPE"

// oldStatus is what a task's state was called.
var oldStatus = map[forewarmv1.TaskState]algogpu.TaskStatus{
	forewarmv1.TaskState_TASK_STATE_PENDING:   algogpu.TaskStatus_TASK_STATUS_PENDING,
	forewarmv1.TaskState_TASK_STATE_HELD:      algogpu.TaskStatus_TASK_STATUS_PENDING,
	forewarmv1.TaskState_TASK_STATE_SCHEDULED: algogpu.TaskStatus_TASK_STATUS_PENDING,
	forewarmv1.TaskState_TASK_STATE_RUNNING:   algogpu.TaskStatus_TASK_STATUS_RUNNING,
	forewarmv1.TaskState_TASK_STATE_PREEMPTED: algogpu.TaskStatus_TASK_STATUS_RUNNING,
	forewarmv1.TaskState_TASK_STATE_COMPLETED: algogpu.TaskStatus_TASK_STATUS_COMPLETED,
	forewarmv1.TaskState_TASK_STATE_FAILED:    algogpu.TaskStatus_TASK_STATUS_FAILED,
	forewarmv1.TaskState_TASK_STATE_CANCELLED: algogpu.TaskStatus_TASK_STATUS_CANCELLED,
}

// SubmitTask implements GPUScheduler. What cannot be served is rejected, as it was; a call that is
// wrong fails.
func (s *oldService) SubmitTask(ctx context.Context, r *connect.Request[algogpu.TaskRequest]) (
	*connect.Response[algogpu.TaskResponse], error) {
	asked, err := decodeOldTask(r.Msg)
	if err != nil {
		return nil, s.refused(ctx, err)
	}
	got, err := s.service.SubmitTask(ctx, connect.NewRequest(asked))
	if code := connect.CodeOf(err); err != nil && (code == connect.CodeResourceExhausted ||
		code == connect.CodeFailedPrecondition) {
		return connect.NewResponse(&algogpu.TaskResponse{Message: messageOf(err),
			Status: algogpu.TaskStatus_TASK_STATUS_REJECTED}), nil
	}
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&algogpu.TaskResponse{Accepted: true, Message: "task accepted",
		Status: oldStatus[got.Msg.GetTask().GetState()]}), nil
}

func messageOf(err error) string {
	if refused, ok := errors.AsType[*connect.Error](err); ok {
		return refused.Message()
	}
	return err.Error()
}

// decodeOldTask finds the command of a task in what it brings. Anything else that it brings may be
// text of somebody, which no shell is to run.
func decodeOldTask(m *algogpu.TaskRequest) (*forewarmv1.SubmitTaskRequest, error) {
	var payload struct {
		Command []string `json:"command"`
	}
	dec := json.NewDecoder(bytes.NewReader(m.GetPayload()))
	dec.DisallowUnknownFields()
	switch err := dec.Decode(&payload); {
	case m.GetTaskId() == "":
		return nil, problem.Invalid("task_id", "must not be empty", "")
	case m.GetGpuComputeRequired() < 0:
		return nil, problem.Invalid("gpu_compute_required", "must not be negative", "")
	case m.GetEstimatedRuntimeMs() < 0:
		return nil, problem.Invalid("estimated_runtime_ms", "must not be negative", "")
	case err != nil || len(payload.Command) == 0:
		return nil, problem.Invalid("payload", `must be JSON such as {"command":["python","train.py"]}`, "")
	}
	return &forewarmv1.SubmitTaskRequest{TaskId: m.GetTaskId(), UserId: m.GetUserId(), Command: payload.Command,
		Environment: map[string]string{typeLabel: m.GetTaskType().String()}, GpuMemoryRequired: m.GetGpuMemoryRequired()}, nil
}

// GetTaskStatus implements GPUScheduler.
func (s *oldService) GetTaskStatus(ctx context.Context, r *connect.Request[algogpu.TaskStatusRequest]) (
	*connect.Response[algogpu.TaskStatusResponse], error) {
	job, err := s.findTask(ctx, r.Msg.GetTaskId())
	if err != nil {
		return nil, s.refused(ctx, err)
	}
	t := encodeTask(job)
	return connect.NewResponse(&algogpu.TaskStatusResponse{TaskId: r.Msg.GetTaskId(), Status: oldStatus[t.GetState()],
		Message: t.GetMessage(), CreatedAt: t.GetSubmittedAtMs() / 1000, StartedAt: t.GetStartedAtMs() / 1000,
		CompletedAt: t.GetEndedAtMs() / 1000}), nil
}

// CancelTask implements GPUScheduler.
func (s *oldService) CancelTask(ctx context.Context, r *connect.Request[algogpu.CancelTaskRequest]) (
	*connect.Response[algogpu.CancelTaskResponse], error) {
	_, err := s.service.CancelTask(ctx, connect.NewRequest(&forewarmv1.CancelTaskRequest{TaskId: r.Msg.GetTaskId()}))
	if connect.CodeOf(err) == connect.CodeFailedPrecondition {
		return connect.NewResponse(&algogpu.CancelTaskResponse{Message: messageOf(err)}), nil
	}
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&algogpu.CancelTaskResponse{Success: true, Message: "task cancelled"}), nil
}

// mostOldGPUs bounds an answer that has no pages.
const mostOldGPUs = 5000

// GetGPUStatus implements GPUScheduler.
func (s *oldService) GetGPUStatus(ctx context.Context, _ *connect.Request[algogpu.GetGPUStatusRequest]) (
	*connect.Response[algogpu.GPUStatusResponse], error) {
	out := &algogpu.GPUStatusResponse{Timestamp: s.Clock.Now().Unix()}
	asked := &forewarmv1.GetGPUStatusRequest{}
	for {
		got, err := s.service.GetGPUStatus(ctx, connect.NewRequest(asked))
		if err != nil {
			return nil, err
		}
		for _, g := range got.Msg.GetGpus() {
			out.Gpus = append(out.Gpus, encodeOldGPU(int32Of(len(out.GetGpus())), g))
		}
		asked.PageToken = got.Msg.GetNextPageToken()
		if asked.GetPageToken() == "" || len(out.GetGpus()) >= mostOldGPUs {
			return connect.NewResponse(out), nil
		}
	}
}

func encodeOldGPU(place int32, g *forewarmv1.GPUStatus) *algogpu.GPUInfo {
	return &algogpu.GPUInfo{GpuId: place, Name: g.GetModel(), MemoryTotal: g.GetMemoryTotalMib(),
		MemoryUsed: g.GetMemoryUsedMib(), MemoryFree: g.GetMemoryTotalMib() - g.GetMemoryUsedMib(),
		ComputeUtil: g.GetUtilizationPercent(), MemoryUtil: g.GetMemoryBusyPercent(),
		Temperature: g.GetTemperatureCelsius(), RunningTasks: g.GetRunningTasks()}
}

// TaskEvents implements GPUScheduler. A request cannot say where it was: it begins now.
func (s *oldService) TaskEvents(ctx context.Context, _ *connect.Request[algogpu.TaskEventsRequest],
	stream *connect.ServerStream[algogpu.TaskEvent]) error {
	now, err := s.Feed.End(ctx)
	if err != nil {
		return s.refused(ctx, err)
	}
	return s.follow(ctx, ledger.EventFilter{After: now, Type: ofTasks}, &follower{extend: extendOf(ctx),
		begin: func() error { return stream.Send(nil) },
		send: func(e contract.Event) error {
			state, changed := states[stateOf(e)]
			if !changed {
				return nil
			}
			return stream.Send(&algogpu.TaskEvent{TaskId: e.Subject, Status: oldStatus[state], Message: e.Message,
				Timestamp: e.Time.Unix()})
		},
		beat: func(int64) error { return nil }}) // it has no place for a sign of life
}
