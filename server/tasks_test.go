package server_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	forewarmv1 "github.com/forewarm/forewarm/contract/proto/forewarm/v1"
	"github.com/forewarm/forewarm/contract/proto/forewarm/v1/forewarmv1connect"
	"github.com/forewarm/forewarm/internal/httpx"
	"github.com/forewarm/forewarm/node/attach"
	"github.com/forewarm/forewarm/server"
	"github.com/forewarm/forewarm/server/auth"
)

// withKey sends a key with each call.
type withKey struct {
	secret string
	next   http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (k withKey) RoundTrip(r *http.Request) (*http.Response, error) {
	if k.secret != "" {
		r.Header.Set("Authorization", "Bearer "+k.secret)
	}
	return k.next.RoundTrip(r)
}

// listenRPC serves the world at an address, over HTTP/2 without TLS, too.
func (w *world) listenRPC() (url string) {
	w.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(w.t, err)
	web := httpx.NewServer("", w.handler)
	go func() { _ = web.Serve(l) }()
	w.t.Cleanup(func() { _ = web.Close() })
	return "http://" + l.Addr().String()
}

// rpcClient calls with a key, over HTTP/2.
func (w *world) rpcClient(key string) *http.Client {
	transport := attach.NewTransport()
	w.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: withKey{w.keys[key], transport}}
}

// taskClient calls TaskService with a key, over gRPC unless options say otherwise.
func (w *world) taskClient(url, key string, options ...connect.ClientOption) forewarmv1connect.TaskServiceClient {
	if len(options) == 0 {
		options = append(options, connect.WithGRPC())
	}
	return forewarmv1connect.NewTaskServiceClient(w.rpcClient(key), url, options...)
}

// refusedCall is the code of a call that failed, and the problem that it came with.
func refusedCall(t *testing.T, err error) (connect.Code, *forewarmv1.Problem) {
	t.Helper()
	var refused *connect.Error
	require.ErrorAs(t, err, &refused)
	for _, d := range refused.Details() {
		value, err := d.Value()
		require.NoError(t, err)
		if p, ok := value.(*forewarmv1.Problem); ok {
			return refused.Code(), p
		}
	}
	return refused.Code(), nil
}

func submission(id string) *connect.Request[forewarmv1.SubmitTaskRequest] {
	return connect.NewRequest(&forewarmv1.SubmitTaskRequest{TaskId: id, UserId: "u-7", Command: []string{"true"},
		Gpus: 2, GpuMemoryRequired: 40_000, Priority: forewarmv1.TaskPriority_TASK_PRIORITY_HIGH})
}

func named(id string) *connect.Request[forewarmv1.GetTaskStatusRequest] {
	return connect.NewRequest(&forewarmv1.GetTaskStatusRequest{TaskId: id})
}

func ending(id string) *connect.Request[forewarmv1.CancelTaskRequest] {
	return connect.NewRequest(&forewarmv1.CancelTaskRequest{TaskId: id})
}

// A task is a job: whatever is said to one service is seen by the other.
func TestTasksAreJobs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.createPool()
	w.createKey("alice", "member")
	url := w.listenRPC()
	for name, options := range map[string][]connect.ClientOption{"grpc": {connect.WithGRPC()},
		"grpc-web": {connect.WithGRPCWeb()}, "connect": {connect.WithProtoJSON()}} {
		c := w.taskClient(url, "alice", options...)
		got, err := c.SubmitTask(t.Context(), submission("step-"+name))
		require.NoError(t, err, name)
		task := got.Msg.GetTask()
		require.Equal(t, forewarmv1.TaskState_TASK_STATE_PENDING, task.GetState())
		require.Equal(t, "u-7", task.GetUserId())
		job := ask[contract.Job](w, "alice", http.MethodGet, "/v1/jobs/"+task.GetId(), "")
		require.Equal(t, "step-"+name, job.Name)
		require.Equal(t, []string{"true"}, job.Command)
		require.Equal(t, 2, job.GPUs)
		require.Equal(t, "high", job.Priority)
		require.Equal(t, "u-7", job.Environment["FOREWARM_TASK_USER"])
		require.NotContains(t, job.SubmittedBy, "u-7", "a label makes nobody somebody else")

		again, err := c.SubmitTask(t.Context(), submission("step-"+name))
		require.NoError(t, err)
		require.True(t, again.Msg.GetRepeatedCall())
		require.Equal(t, task.GetId(), again.Msg.GetTask().GetId())

		for _, id := range []string{task.GetId(), "step-" + name} {
			read, err := c.GetTaskStatus(t.Context(), named(id))
			require.NoError(t, err)
			require.Equal(t, task.GetId(), read.Msg.GetTask().GetId())
			require.Equal(t, begin.UnixMilli(), read.Msg.GetTask().GetSubmittedAtMs())
			require.Zero(t, read.Msg.GetTask().GetStartedAtMs())
		}
		ended, err := c.CancelTask(t.Context(), ending("step-"+name))
		require.NoError(t, err)
		require.Equal(t, forewarmv1.TaskState_TASK_STATE_CANCELLED, ended.Msg.GetTask().GetState())
		_, err = c.CancelTask(t.Context(), ending(task.GetId()))
		code, p := refusedCall(t, err)
		require.Equal(t, connect.CodeFailedPrecondition, code)
		require.Equal(t, contract.CodeStateConflict, p.GetCode())
		again, err = c.SubmitTask(t.Context(), submission("step-"+name))
		require.NoError(t, err)
		require.Equal(t, forewarmv1.TaskState_TASK_STATE_CANCELLED, again.Msg.GetTask().GetState(), "as it is now")
	}
	jobs := ask[contract.List[contract.Job]](w, "alice", http.MethodGet, "/v1/jobs?all=true", "").Items
	require.Len(t, jobs, 3)
}

// What is wrong with a call is told in its protocol, with the field.
func TestCallsAreRefusedWithDetails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.createPool()
	w.createKey("alice", "member")
	w.createKey("vera", "viewer")
	w.createAgentKey("bot")
	w.createTenant("other")
	url := w.listenRPC()
	alice, vera := w.taskClient(url, "alice"), w.taskClient(url, "vera")
	made, err := alice.SubmitTask(t.Context(), submission("mine"))
	require.NoError(t, err)

	for name, c := range map[string]struct {
		change func(*forewarmv1.SubmitTaskRequest)
		code   connect.Code
		field  string
	}{
		"negative memory": {func(m *forewarmv1.SubmitTaskRequest) { m.GpuMemoryRequired = -100_000 },
			connect.CodeInvalidArgument, "/gpu_memory_required"},
		"huge memory": {func(m *forewarmv1.SubmitTaskRequest) { m.GpuMemoryRequired = 1 << 62 },
			connect.CodeInvalidArgument, "/gpu_memory_required"},
		"negative gpus": {func(m *forewarmv1.SubmitTaskRequest) { m.Gpus = -1 }, connect.CodeInvalidArgument, "/gpus"},
		"no command":    {func(m *forewarmv1.SubmitTaskRequest) { m.Command = nil }, connect.CodeInvalidArgument, "/command"},
		"no such pool":  {func(m *forewarmv1.SubmitTaskRequest) { m.Pool = "nowhere" }, connect.CodeInvalidArgument, "/pool"},
		"our id": {func(m *forewarmv1.SubmitTaskRequest) { m.TaskId = made.Msg.GetTask().GetId() },
			connect.CodeInvalidArgument, "/task_id"},
		"long id": {func(m *forewarmv1.SubmitTaskRequest) { m.TaskId = strings.Repeat("x", 64) },
			connect.CodeInvalidArgument, "/task_id"},
		"priority": {func(m *forewarmv1.SubmitTaskRequest) { m.Priority = 99 }, connect.CodeInvalidArgument, "/priority"},
		"another task": {func(m *forewarmv1.SubmitTaskRequest) { m.TaskId, m.Gpus = "mine", 1 },
			connect.CodeAlreadyExists, "/task_id"},
		"memory of no GPU": {func(m *forewarmv1.SubmitTaskRequest) { m.GpuMemoryRequired = 200_000 },
			connect.CodeInvalidArgument, "/gpu_memory_required"},
		"more GPUs than there are": {func(m *forewarmv1.SubmitTaskRequest) { m.Gpus = 100 },
			connect.CodeFailedPrecondition, "/gpus"},
	} {
		m := submission("refused").Msg
		c.change(m)
		_, err := alice.SubmitTask(t.Context(), connect.NewRequest(m))
		code, p := refusedCall(t, err)
		require.Equal(t, c.code, code, "%s: %v", name, p)
		require.NotNil(t, p, name)
		require.NotEmpty(t, p.GetRequestId(), name)
		require.Equal(t, c.field, p.GetFields()[0].GetField(), name)
		for _, ours := range []string{"Idempotency", "name must", "min_gpu"} {
			require.NotContains(t, p.String(), ours, name)
		}
	}
	require.Len(t, ask[contract.List[contract.Job]](w, "alice", http.MethodGet, "/v1/jobs?all=true", "").Items, 1)

	denied := func(code connect.Code, err error) {
		t.Helper()
		got, p := refusedCall(t, err)
		require.Equal(t, code, got)
		require.NotNil(t, p)
	}
	_, err = vera.SubmitTask(t.Context(), submission("hers"))
	denied(connect.CodePermissionDenied, err)
	_, err = vera.CancelTask(t.Context(), ending("mine"))
	denied(connect.CodePermissionDenied, err)
	_, err = vera.GetTaskStatus(t.Context(), named("mine"))
	require.NoError(t, err)
	_, err = w.taskClient(url, "bot").GetTaskStatus(t.Context(), named("mine"))
	denied(connect.CodePermissionDenied, err)
	_, err = w.taskClient(url, "nobody").GetTaskStatus(t.Context(), named("mine"))
	denied(connect.CodeUnauthenticated, err)
	for _, id := range []string{made.Msg.GetTask().GetId(), "mine", "job_0123", strings.Repeat("x", 99)} {
		_, err = w.taskClient(url, "other").GetTaskStatus(t.Context(), named(id))
		denied(connect.CodeNotFound, err)
		_, err = w.taskClient(url, "other").CancelTask(t.Context(), ending(id))
		denied(connect.CodeNotFound, err)
	}
	_, err = alice.GetGPUStatus(t.Context(), connect.NewRequest(&forewarmv1.GetGPUStatusRequest{PageToken: "xx"}))
	_, p := refusedCall(t, err)
	require.Equal(t, "page_token", p.GetFields()[0].GetField())
	require.Contains(t, p.GetDetail(), "The page_token does not belong")
	beyond, err := alice.TaskEvents(t.Context(), connect.NewRequest(&forewarmv1.TaskEventsRequest{AfterSequence: 9999}))
	require.NoError(t, err)
	require.False(t, beyond.Receive())
	_, p = refusedCall(t, beyond.Err())
	require.Equal(t, "after_sequence", p.GetFields()[0].GetField())
	m := submission("large").Msg
	m.Input = make([]byte, 2<<20)
	_, err = alice.SubmitTask(t.Context(), connect.NewRequest(m))
	denied(connect.CodeInvalidArgument, err)
}

// An id is one tenant's: the same one of another is another task.
func TestTaskIDsAreOfTheirTenant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.createPool()
	w.createTenant("other")
	w.createKey("alice", "member")
	url := w.listenRPC()
	mine, err := w.taskClient(url, "alice").SubmitTask(t.Context(), submission("one"))
	require.NoError(t, err)
	theirs, err := w.taskClient(url, "other").SubmitTask(t.Context(), submission("one"))
	require.NoError(t, err)
	require.False(t, theirs.Msg.GetRepeatedCall())
	require.NotEqual(t, mine.Msg.GetTask().GetId(), theirs.Msg.GetTask().GetId())
	read, err := w.taskClient(url, "root").GetTaskStatus(t.Context(), named("one"))
	require.NoError(t, err)
	require.Equal(t, mine.Msg.GetTask().GetId(), read.Msg.GetTask().GetId(), "an operator's own names, too")
}

// Whoever lost the stream goes on after the last event.
func TestTaskEventsResume(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.createPool()
	w.createTenant("other")
	w.createKey("alice", "member")
	url := w.listenRPC()
	alice := w.taskClient(url, "alice")
	made, err := alice.SubmitTask(t.Context(), submission("one"))
	require.NoError(t, err)
	_, err = alice.SubmitTask(t.Context(), submission("two"))
	require.NoError(t, err)
	_, err = w.taskClient(url, "other").SubmitTask(t.Context(), submission("theirs"))
	require.NoError(t, err)

	follow := func(m *forewarmv1.TaskEventsRequest) (*connect.ServerStreamForClient[forewarmv1.TaskEventsResponse],
		context.CancelFunc) {
		ctx, cancel := context.WithCancel(t.Context())
		stream, err := alice.TaskEvents(ctx, connect.NewRequest(m))
		require.NoError(t, err)
		return stream, cancel
	}
	next := func(stream *connect.ServerStreamForClient[forewarmv1.TaskEventsResponse]) *forewarmv1.TaskEventsResponse {
		require.True(t, stream.Receive(), stream.Err())
		return stream.Msg()
	}
	all, leave := follow(&forewarmv1.TaskEventsRequest{})
	first, second := next(all), next(all)
	require.Equal(t, made.Msg.GetTask().GetId(), first.GetTaskId())
	require.Equal(t, forewarmv1.TaskState_TASK_STATE_PENDING, first.GetState())
	require.Equal(t, "job.submitted", first.GetType())
	require.Greater(t, second.GetSequence(), first.GetSequence())
	leave()

	rest, leave := follow(&forewarmv1.TaskEventsRequest{AfterSequence: first.GetSequence()})
	require.Equal(t, second.GetSequence(), next(rest).GetSequence())
	_, err = alice.CancelTask(t.Context(), ending("one"))
	require.NoError(t, err)
	require.NoError(t, w.server.Step(t.Context()))
	cancelled := next(rest)
	require.Equal(t, forewarmv1.TaskState_TASK_STATE_CANCELLED, cancelled.GetState(), "others' are not seen")
	require.Equal(t, made.Msg.GetTask().GetId(), cancelled.GetTaskId())
	leave()

	one, leave := follow(&forewarmv1.TaskEventsRequest{TaskId: "one"})
	require.Equal(t, first.GetSequence(), next(one).GetSequence())
	require.Equal(t, cancelled.GetSequence(), next(one).GetSequence())
	leave()

	none, leave := follow(&forewarmv1.TaskEventsRequest{TaskId: "theirs"})
	defer leave()
	require.False(t, none.Receive())
	code, _ := refusedCall(t, none.Err())
	require.Equal(t, connect.CodeNotFound, code)
}

// A stream counts like every other, and ends with its key.
func TestTaskEventsAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *server.Config) { c.Streams.PerKey = 1 })
	key := w.createKey("alice", "viewer")
	url := w.listenRPC()
	c := w.taskClient(url, "alice")
	first, err := c.TaskEvents(t.Context(), connect.NewRequest(&forewarmv1.TaskEventsRequest{}))
	require.NoError(t, err)
	require.NotNil(t, first.ResponseHeader())
	second, err := c.TaskEvents(t.Context(), connect.NewRequest(&forewarmv1.TaskEventsRequest{}))
	require.NoError(t, err)
	require.False(t, second.Receive())
	code, p := refusedCall(t, second.Err())
	require.Equal(t, connect.CodeResourceExhausted, code)
	require.NotZero(t, p.GetRetryAfterSeconds())

	require.Equal(t, 200, w.send("root", http.MethodDelete, "/v1/keys/"+key.ID, "").Code)
	w.clock.Advance(auth.CacheFor + 1)
	require.False(t, first.Receive())
	code, _ = refusedCall(t, first.Err())
	require.Equal(t, connect.CodeUnauthenticated, code)
}

// Calls count against the key's rates: those that read as reads, the others as writes.
func TestCallsAreLimited(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *server.Config) { c.Limits.Writes = auth.Rate{PerSecond: 0.001, Burst: 1} })
	w.createKey("alice", "member") // which is root's write
	c := w.taskClient(w.listenRPC(), "alice")
	_, err := c.CancelTask(t.Context(), ending("none"))
	code, _ := refusedCall(t, err)
	require.Equal(t, connect.CodeNotFound, code)
	_, err = c.CancelTask(t.Context(), ending("none"))
	code, p := refusedCall(t, err)
	require.Equal(t, connect.CodeResourceExhausted, code)
	require.Equal(t, contract.CodeRateLimited, p.GetCode())
	for range 3 {
		_, err = c.GetTaskStatus(t.Context(), named("none"))
		code, _ = refusedCall(t, err)
		require.Equal(t, connect.CodeNotFound, code)
	}
}

// A field that there is not is refused in JSON, as by the API.
func TestUnknownFieldsOfTasks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.createPool()
	const submit = "/forewarm.v1.TaskService/SubmitTask"
	out := w.send("root", http.MethodPost, submit, `{"taskId":"one","command":["true"],"gpuz":2}`)
	require.Equal(t, 400, out.Code, out.Body.String())
	require.Contains(t, out.Body.String(), "gpuz")
	out = w.send("root", http.MethodPost, submit, `{"taskId":"one","command":["true"],"gpus":2}`)
	require.Equal(t, 200, out.Code, out.Body.String())
	require.Contains(t, out.Body.String(), `"one"`)
}
