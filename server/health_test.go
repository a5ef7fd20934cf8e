package server_test

import (
	"context"
	"testing"
	"time"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"
	"connectrpc.com/grpcreflect"
	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract/proto/forewarm/v1/forewarmv1connect"
)

// nextHealth is what comes next on a watch.
func nextHealth(t *testing.T, from <-chan grpchealth.WatchEvent) grpchealth.Status {
	t.Helper()
	e := <-from
	require.NoError(t, e.Err)
	require.NotNil(t, e.Response)
	return e.Response.Status
}

// A watch is told when the database goes and comes, and when the server ends, which ends it, too.
func TestHealthIsWatched(t *testing.T) {
	t.Parallel()
	w, other := inFile(t)
	url := w.listenRPC()
	c := grpchealth.NewClient(w.rpcClient(""), url, connect.WithGRPC())
	watch := c.Watch(t.Context(), &grpchealth.CheckRequest{Service: forewarmv1connect.TaskServiceName})
	require.Equal(t, grpchealth.StatusServing, nextHealth(t, watch))
	unknown := c.Watch(t.Context(), &grpchealth.CheckRequest{Service: "no.such.Service"})
	require.EqualValues(t, 3, nextHealth(t, unknown), "as gRPC's protocol has it")

	_, err := other.ExecContext(t.Context(), "BEGIN IMMEDIATE")
	require.NoError(t, err)
	w.clock.Advance(time.Second)
	_ = w.server.Step(t.Context()) // may fail by what else it does: the database is away
	require.Equal(t, grpchealth.StatusNotServing, nextHealth(t, watch))
	_, err = other.ExecContext(t.Context(), "ROLLBACK")
	require.NoError(t, err)
	w.clock.Advance(time.Second)
	require.NoError(t, w.server.Step(t.Context()))
	require.Equal(t, grpchealth.StatusServing, nextHealth(t, watch))

	ended, end := context.WithCancel(t.Context())
	end()
	require.NoError(t, w.server.Run(ended))
	require.Equal(t, grpchealth.StatusNotServing, nextHealth(t, watch))
	for _, ends := range []<-chan grpchealth.WatchEvent{watch, unknown} {
		code, _ := refusedCall(t, (<-ends).Err)
		require.Equal(t, connect.CodeUnavailable, code)
	}
	got, err := c.Check(t.Context(), &grpchealth.CheckRequest{})
	require.NoError(t, err)
	require.Equal(t, grpchealth.StatusNotServing, got.Status)
	require.Equal(t, 503, w.send("", "GET", "/readyz", "").Code)
}

// A watch ends after an hour as gRPC has it that clients begin again: one that leaked would keep its place for ever.
func TestAWatchOfHealthEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := grpchealth.NewClient(w.rpcClient(""), w.listenRPC(), connect.WithGRPC())
	watch := c.Watch(t.Context(), &grpchealth.CheckRequest{})
	require.Equal(t, grpchealth.StatusServing, nextHealth(t, watch))
	w.clock.Advance(time.Hour - time.Second)
	require.NoError(t, w.server.Step(t.Context()))
	late := c.Watch(t.Context(), &grpchealth.CheckRequest{})
	require.Equal(t, grpchealth.StatusServing, nextHealth(t, late))
	w.clock.Advance(time.Second)
	require.NoError(t, w.server.Step(t.Context()))
	ended := (<-watch).Err
	require.Equal(t, connect.CodeUnavailable, connect.CodeOf(ended))
	require.ErrorContains(t, ended, "a watch lives for 1h0m0s: watch again")
	again := c.Watch(t.Context(), &grpchealth.CheckRequest{})
	require.Equal(t, grpchealth.StatusServing, nextHealth(t, again))
	ctx, end := context.WithCancel(t.Context())
	end()
	require.NoError(t, w.server.Run(ctx))
	for _, younger := range []<-chan grpchealth.WatchEvent{late, again} {
		require.Equal(t, grpchealth.StatusNotServing, nextHealth(t, younger), "it is told more")
	}
}

// Nobody takes all the places of those who watch.
func TestWatchesOfHealthAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := grpchealth.NewClient(w.rpcClient(""), w.listenRPC(), connect.WithGRPC())
	ctx, end := context.WithCancel(t.Context())
	var open []<-chan grpchealth.WatchEvent
	for range 16 {
		open = append(open, c.Watch(ctx, &grpchealth.CheckRequest{}))
		require.Equal(t, grpchealth.StatusServing, nextHealth(t, open[len(open)-1]))
	}
	refused := <-c.Watch(ctx, &grpchealth.CheckRequest{})
	code, _ := refusedCall(t, refused.Err)
	require.Equal(t, connect.CodeResourceExhausted, code)
	_, err := c.Check(ctx, &grpchealth.CheckRequest{})
	require.NoError(t, err, "whoever asks once is answered")
	end()
	for _, ended := range open {
		for range ended { // until it is closed
		}
	}
	require.Eventually(t, func() bool {
		again, leave := context.WithCancel(t.Context())
		defer leave()
		return (<-c.Watch(again, &grpchealth.CheckRequest{})).Err == nil
	}, time.Minute, time.Millisecond, "places are given back")
}

// Every service that is served has its health, and can be described.
func TestEveryReflectedServiceHasItsHealth(t *testing.T) {
	t.Parallel()
	w := newOldWorld(t)
	url := w.listenRPC()
	c := grpchealth.NewClient(w.rpcClient(""), url, connect.WithGRPC())
	stream := grpcreflect.NewClient(w.rpcClient("root"), url, connect.WithGRPC()).NewStream(t.Context())
	names, err := stream.ListServices()
	require.NoError(t, err)
	require.Len(t, names, 3)
	for _, name := range names {
		_, err := stream.FileContainingSymbol(name)
		require.NoError(t, err, name)
		got, err := c.Check(t.Context(), &grpchealth.CheckRequest{Service: string(name)})
		require.NoError(t, err, name)
		require.Equal(t, grpchealth.StatusServing, got.Status)
	}
	_, _ = stream.Close()
}
