package server_test

import (
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract/proto/compat/algogpu"
	"github.com/forewarm/forewarm/contract/proto/compat/algogpu/algogpuconnect"
)

// A client of go-scheduler gets what it knows, and what is true.
func TestOldClientsSubmitTasks(t *testing.T) {
	t.Parallel()
	w := newOldWorld(t)
	pool := w.createPool()
	w.warmNodes(pool, 1)
	w.createKey("alice", "member")
	w.createTenant("other")
	url, ctx := w.listenRPC(), t.Context()
	c := algogpuconnect.NewGPUSchedulerClient(w.rpcClient("alice"), url, connect.WithGRPC())
	events, err := c.TaskEvents(ctx, connect.NewRequest(&algogpu.TaskEventsRequest{}))
	require.NoError(t, err)
	require.NotNil(t, events.ResponseHeader()) // they are followed from now on

	ask := func(id, payload string, memory int64) (*algogpu.TaskResponse, error) {
		got, err := c.SubmitTask(ctx, connect.NewRequest(&algogpu.TaskRequest{TaskId: id, UserId: "u",
			TaskType: algogpu.TaskType_TASK_TYPE_LLM, GpuMemoryRequired: memory, Payload: []byte(payload)}))
		if err != nil {
			return nil, err
		}
		return got.Msg, nil
	}
	got, err := ask("t1", `{"command":["python","serve.py"]}`, 8192)
	require.NoError(t, err)
	require.True(t, got.GetAccepted())
	require.Equal(t, algogpu.TaskStatus_TASK_STATUS_PENDING, got.GetStatus())
	for _, payload := range []string{"", "Tell me a story; rm -rf /", `{"command":[]}`, `{"prompt":"hello"}`} {
		_, err = ask("t2", payload, 8192)
		require.Equal(t, connect.CodeInvalidArgument, connect.CodeOf(err), payload)
	}
	_, err = ask("t2", `{"command":["true"]}`, -100_000)
	require.Equal(t, connect.CodeInvalidArgument, connect.CodeOf(err))

	status := func(key, id string) (*algogpu.TaskStatusResponse, error) {
		c := algogpuconnect.NewGPUSchedulerClient(w.rpcClient(key), url, connect.WithGRPC())
		got, err := c.GetTaskStatus(ctx, connect.NewRequest(&algogpu.TaskStatusRequest{TaskId: id}))
		if err != nil {
			return nil, err
		}
		return got.Msg, nil
	}
	now, err := status("alice", "t1")
	require.NoError(t, err)
	require.Equal(t, "t1", now.GetTaskId())
	require.Equal(t, w.clock.Now().Unix(), now.GetCreatedAt())
	require.Zero(t, now.GetStartedAt(), "not the beginning of the calendar")
	_, err = status("alice", "t2")
	require.Equal(t, connect.CodeNotFound, connect.CodeOf(err))
	_, err = status("other", "t1")
	require.Equal(t, connect.CodeNotFound, connect.CodeOf(err))
	_, err = status("nobody", "t1")
	require.Equal(t, connect.CodeUnauthenticated, connect.CodeOf(err))

	require.NoError(t, w.ledger.ScheduleJobs(ctx, pool.ID))
	gpus, err := c.GetGPUStatus(ctx, connect.NewRequest(&algogpu.GetGPUStatusRequest{}))
	require.NoError(t, err)
	require.Len(t, gpus.Msg.GetGpus(), 1)
	require.EqualValues(t, 81920, gpus.Msg.GetGpus()[0].GetMemoryTotal())
	require.Len(t, gpus.Msg.GetGpus()[0].GetRunningTasks(), 1)

	ended, err := c.CancelTask(ctx, connect.NewRequest(&algogpu.CancelTaskRequest{TaskId: "t1"}))
	require.NoError(t, err)
	require.True(t, ended.Msg.GetSuccess())
	ended, err = c.CancelTask(ctx, connect.NewRequest(&algogpu.CancelTaskRequest{TaskId: "t1"}))
	require.NoError(t, err)
	require.False(t, ended.Msg.GetSuccess())
	require.NotEmpty(t, ended.Msg.GetMessage())
	gpus, err = c.GetGPUStatus(ctx, connect.NewRequest(&algogpu.GetGPUStatusRequest{}))
	require.NoError(t, err)
	require.Empty(t, gpus.Msg.GetGpus(), "trap l: what it had is given back")

	require.NoError(t, w.server.Step(ctx))
	for _, want := range []algogpu.TaskStatus{algogpu.TaskStatus_TASK_STATUS_PENDING,
		algogpu.TaskStatus_TASK_STATUS_PENDING, algogpu.TaskStatus_TASK_STATUS_CANCELLED} {
		require.True(t, events.Receive(), events.Err())
		require.Equal(t, want, events.Msg().GetStatus())
	}
}

// It is there only where it is wanted.
func TestOldServiceIsOffWithTheOldRoutes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := algogpuconnect.NewGPUSchedulerClient(w.rpcClient("root"), w.listenRPC(), connect.WithGRPC())
	_, err := c.GetGPUStatus(t.Context(), connect.NewRequest(&algogpu.GetGPUStatusRequest{}))
	require.Equal(t, connect.CodeUnimplemented, connect.CodeOf(err))
}
