package server_test

import (
	"errors"
	"io"
	"testing"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"
	"connectrpc.com/grpcreflect"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/reflect/protoreflect"

	forewarmv1 "github.com/forewarm/forewarm/contract/proto/forewarm/v1"
	"github.com/forewarm/forewarm/contract/proto/forewarm/v1/forewarmv1connect"
)

// Tenants see what they hold, and how much there is; operators all.
func TestGPUStatusIsOfTheGPUs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pool := w.createPool()
	w.warmNodes(pool, 1)
	w.createKey("alice", "member")
	url := w.listenRPC()
	got, err := w.taskClient(url, "root").GetGPUStatus(t.Context(),
		connect.NewRequest(&forewarmv1.GetGPUStatusRequest{PageSize: 3}))
	require.NoError(t, err)
	require.Len(t, got.Msg.GetGpus(), 3)
	require.EqualValues(t, 4, got.Msg.GetTotal())
	require.EqualValues(t, 4, got.Msg.GetFree())
	first := got.Msg.GetGpus()[0]
	require.Equal(t, "free", first.GetState())
	require.EqualValues(t, 81920, first.GetMemoryTotalMib())
	require.Nil(t, first.MemoryUsedMib, "no daemon has said anything, so nothing is said")
	require.True(t, first.GetSimulated())
	rest, err := w.taskClient(url, "root").GetGPUStatus(t.Context(), connect.NewRequest(
		&forewarmv1.GetGPUStatusRequest{Pool: "lab", PageToken: got.Msg.GetNextPageToken()}))
	require.NoError(t, err)
	require.Len(t, rest.Msg.GetGpus(), 1)
	require.Empty(t, rest.Msg.GetNextPageToken())

	submitted, err := w.taskClient(url, "alice").SubmitTask(t.Context(), submission("one"))
	require.NoError(t, err)
	require.NoError(t, w.ledger.ScheduleJobs(t.Context(), pool.ID))
	held, err := w.taskClient(url, "alice").GetGPUStatus(t.Context(),
		connect.NewRequest(&forewarmv1.GetGPUStatusRequest{}))
	require.NoError(t, err)
	require.Len(t, held.Msg.GetGpus(), 2)
	for _, g := range held.Msg.GetGpus() {
		require.Equal(t, "held", g.GetState())
		require.Equal(t, []string{submitted.Msg.GetTask().GetId()}, g.GetRunningTasks())
	}
	for _, m := range []*forewarmv1.GetGPUStatusRequest{{PageSize: -1}, {PageSize: 201}, {PageToken: "x"},
		{Pool: "nowhere"}} {
		_, err = w.taskClient(url, "alice").GetGPUStatus(t.Context(), connect.NewRequest(m))
		code, _ := refusedCall(t, err)
		require.Equal(t, connect.CodeInvalidArgument, code)
	}
}

// Anybody may ask whether the server is well, and nobody else for more.
func TestHealthIsToldToAnybody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	url := w.listenRPC()
	c := grpchealth.NewClient(w.rpcClient(""), url, connect.WithGRPC())
	check := func(service string) (*grpchealth.CheckResponse, error) {
		return c.Check(t.Context(), &grpchealth.CheckRequest{Service: service})
	}
	for _, service := range []string{"", forewarmv1connect.TaskServiceName} {
		got, err := check(service)
		require.NoError(t, err)
		require.Equal(t, grpchealth.StatusServing, got.Status)
	}
	_, err := check("no.such.Service")
	code, _ := refusedCall(t, err)
	require.Equal(t, connect.CodeNotFound, code)
}

// Who has a key may ask what there is to call.
func TestServicesAreReflected(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.createKey("vera", "viewer")
	url := w.listenRPC()
	stream := grpcreflect.NewClient(w.rpcClient("vera"), url, connect.WithGRPC()).NewStream(t.Context())
	names, err := stream.ListServices()
	require.NoError(t, err)
	require.Contains(t, names, protoreflect.FullName(forewarmv1connect.TaskServiceName))
	files, err := stream.FileContainingSymbol(protoreflect.FullName(forewarmv1connect.TaskServiceName))
	require.NoError(t, err)
	require.Equal(t, "forewarm/v1/task.proto", files[0].GetName())
	_, err = stream.Close()
	require.True(t, err == nil || errors.Is(err, io.EOF), err)

	closed := grpcreflect.NewClient(w.rpcClient(""), url, connect.WithGRPC()).NewStream(t.Context())
	_, err = closed.ListServices()
	code, _ := refusedCall(t, err)
	require.Equal(t, connect.CodeUnauthenticated, code)
}
