package server_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/client/session"
	"github.com/forewarm/forewarm/contract"
	forewarmv1 "github.com/forewarm/forewarm/contract/proto/forewarm/v1"
	"github.com/forewarm/forewarm/contract/proto/forewarm/v1/forewarmv1connect"
	wire "github.com/forewarm/forewarm/contract/session"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/node/attach"
	"github.com/forewarm/forewarm/server"
)

// Where the daemon is attached to another server than its user is connected to, the servers carry the session.
func TestASessionAcrossServers(t *testing.T) {
	p := newPair(t)
	s := siteOf(t, fleetIn(t, p.world), p.decider)
	input := strings.Repeat("all of it\n", 300_000)
	var copied bytes.Buffer
	end, err := s.as("root").Run(t.Context(), s.held.ID, session.Command{Stdin: strings.NewReader(input), Stdout: &copied,
		Command: wire.Command{Arguments: []string{"sh", "-c", "cat; exit 4"}}})
	require.NoError(t, err)
	require.Equal(t, wire.End{ExitCode: 4}, end)
	require.True(t, input == copied.String())

	began, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		var out lineWriter = began
		_, err := s.as("root").Run(t.Context(), s.held.ID, session.Command{Stdout: out,
			Command: wire.Command{Arguments: []string{"sh", "-c", "echo up; sleep 1000"}}})
		ended <- err
	}()
	require.Equal(t, "up\n", <-began)
	s.cutNode()
	var told *session.EndError
	require.ErrorAs(t, <-ended, &told)
	require.Equal(t, wire.NodeLost, told.Code)
	require.Eventually(t, func() bool {
		_, err := s.as("root").Run(t.Context(), s.held.ID, session.Command{})
		refused, ok := errors.AsType[*client.Error](err)
		return ok && refused.Problem.Code == contract.CodeNodeNotAttached
	}, time.Minute, 10*time.Millisecond)
}

// An allocation is released where its node's daemon is not attached, and nobody has a session there: the daemon is
// asked to report at once, and told that what it has of it is to end.
func TestADaemonIsToldThatAnAllocationHasEnded(t *testing.T) {
	p := newPair(t)
	s := siteBefore(t, fleetIn(t, p.world), p.server)
	asked := make(chan struct{}, 16)
	s.hurry = func() { asked <- struct{}{} }
	s.attach(1)
	_, _, err := s.exec("root", "true")
	require.NoError(t, err)
	s.report()
	for len(asked) > 0 { // a daemon that attaches always reports
		<-asked
	}
	look := s.server.OrdersFromNow()
	require.NoError(t, look(t.Context()))
	ask[contract.Allocation](s.world, "root", http.MethodDelete, "/v1/allocations/"+s.held.ID, "", "Idempotency-Key",
		"end")
	require.NoError(t, look(t.Context()))
	select {
	case <-asked:
	case <-time.After(time.Minute):
		require.Fail(t, "it is not asked")
	}
	require.Contains(t, s.report().Ended, s.held.ID)
}

// Of two daemons of one boot the later one is asked, one of another boot is refused, and one that is asked for
// somebody else's session does not get it.
func TestWhichDaemonIsAttached(t *testing.T) {
	s := newSite(t)
	attachAs := func(boot string, epoch int64) error {
		api := forewarmv1connect.NewNodeServiceClient(&http.Client{Transport: attach.NewTransport()}, s.nodeURL)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		stream := api.Attach(ctx)
		stream.RequestHeader().Set("Authorization", "Bearer "+s.keys["daemon"])
		require.NoError(t, stream.Send(&forewarmv1.AttachRequest{BootId: boot, Epoch: epoch}))
		_, err := stream.Receive()
		_ = stream.CloseRequest()
		return err
	}
	require.Equal(t, connect.CodePermissionDenied, connect.CodeOf(attachAs("another boot", 9)))
	require.Equal(t, connect.CodeAborted, connect.CodeOf(attachAs("boot", 0)), "it began before the one that is there")
	_, out, err := s.exec("root", "echo still here")
	require.NoError(t, err)
	require.Equal(t, "still here\n", out)
	require.NoError(t, attachAs("boot", 2))
	require.Eventually(t, func() bool { // the earlier one has been sent away, and comes back
		_, _, err := s.exec("root", "true")
		return err == nil
	}, time.Minute, 10*time.Millisecond)

	stranger := forewarmv1connect.NewNodeServiceClient(&http.Client{Transport: attach.NewTransport()}, s.nodeURL)
	stream := stranger.Serve(t.Context())
	stream.RequestHeader().Set("Authorization", "Bearer "+s.keys["daemon"])
	require.NoError(t, stream.Send(&forewarmv1.ServeRequest{SessionId: "guessed"}))
	_, err = stream.Receive()
	require.Equal(t, connect.CodeNotFound, connect.CodeOf(err))
	_ = stream.CloseRequest()
	root := stranger.Attach(t.Context())
	root.RequestHeader().Set("Authorization", "Bearer "+s.keys["root"])
	_ = root.Send(&forewarmv1.AttachRequest{BootId: "boot", Epoch: 9})
	_, err = root.Receive()
	require.Equal(t, connect.CodePermissionDenied, connect.CodeOf(err))
	_ = root.CloseRequest()
}

// Whoever has a node's key may begin as late as they say: a daemon that joins is its node's from then on, and with the
// key before nobody serves a session.
func TestADaemonThatJoinsTakesOver(t *testing.T) {
	s := newSite(t)
	s.stop()
	api := forewarmv1connect.NewNodeServiceClient(&http.Client{Transport: attach.NewTransport()}, s.nodeURL)
	open := func(key string, epoch int64) (sent func() error) {
		stream := api.Attach(t.Context())
		stream.RequestHeader().Set("Authorization", "Bearer "+s.keys[key])
		require.NoError(t, stream.Send(&forewarmv1.AttachRequest{BootId: "boot", Epoch: epoch}))
		t.Cleanup(func() { _ = stream.CloseRequest() })
		return func() error {
			_, err := stream.Receive()
			return err
		}
	}
	thief := open("daemon", math.MaxInt64)
	require.NoError(t, thief())
	serving := api.Serve(t.Context())
	serving.RequestHeader().Set("Authorization", "Bearer "+s.keys["daemon"])
	require.NoError(t, serving.Send(nil)) // it has begun, and has not said for what
	s.clock.Advance(time.Second)
	s.join(s.on, "boot", "anew")
	rightful := open("anew", 1)
	require.NoError(t, rightful())
	require.Equal(t, connect.CodeAborted, connect.CodeOf(thief()))
	_ = serving.Send(&forewarmv1.ServeRequest{SessionId: "guessed"}) // it is over where it was slower than the join
	_, err := serving.Receive()
	require.Contains(t, []connect.Code{connect.CodePermissionDenied, connect.CodeUnauthenticated}, connect.CodeOf(err))
	_ = serving.CloseRequest()
}

// What is attached, open and ended is counted.
func TestSessionsAreCounted(t *testing.T) {
	registry := obs.NewRegistry()
	metrics, err := obs.NewMetrics(registry)
	require.NoError(t, err)
	s := newSite(t, func(c *server.Config) { c.Metric = metrics })
	read := func(name string) (all float64) {
		families, err := registry.Gather()
		require.NoError(t, err)
		for _, f := range families {
			for _, m := range f.GetMetric() {
				if f.GetName() == name {
					all += m.GetGauge().GetValue() + m.GetCounter().GetValue()
				}
			}
		}
		return all
	}
	require.InDelta(t, 1, read("forewarm_node_streams"), 0)
	require.Eventually(t, func() bool { return read("forewarm_sessions") == 0 }, time.Minute, time.Millisecond)
	ended := read("forewarm_sessions_ended_total")
	require.Positive(t, ended, "that of waiting for the daemon")
	began, done := make(chan string, 1), make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		var out lineWriter = began
		_, err := s.as("root").Run(ctx, s.held.ID, session.Command{Stdout: out,
			Command: wire.Command{Arguments: []string{"sh", "-c", "echo up; sleep 1000"}}})
		done <- err
	}()
	<-began
	require.InDelta(t, 1, read("forewarm_sessions"), 0)
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	require.Eventually(t, func() bool {
		return read("forewarm_sessions") == 0 && read("forewarm_sessions_ended_total") == ended+1
	}, time.Minute, time.Millisecond)
	// A user who leaves while the command does not read what they send leaves nothing open.
	var sent atomic.Int64
	ctx, cancel = context.WithCancel(t.Context())
	go func() {
		var out lineWriter = began
		_, err := s.as("root").Run(ctx, s.held.ID, session.Command{Stdin: endless{&sent}, Stdout: out,
			Command: wire.Command{Arguments: []string{"sh", "-c", "echo up; sleep 1000"}}})
		done <- err
	}()
	<-began
	for before := int64(-1); before != sent.Load(); { // until nothing more is taken
		before = sent.Load()
		<-time.After(200 * time.Millisecond)
	}
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	require.Eventually(t, func() bool { return read("forewarm_sessions") == 0 }, time.Minute, time.Millisecond)
	s.stop()
	require.Eventually(t, func() bool { return read("forewarm_node_streams") == 0 }, time.Minute, time.Millisecond)
}

// endless is an input without an end, which counts what was read of it.
type endless struct{ read *atomic.Int64 }

// Read implements io.Reader.
func (e endless) Read(p []byte) (int, error) {
	e.read.Add(int64(len(p)))
	return len(p), nil
}
