package attach

import (
	"context"
	"sync"
	"time"

	"connectrpc.com/connect"

	"github.com/forewarm/forewarm/contract/session"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/node/hold"
	"github.com/forewarm/forewarm/node/work"

	forewarmv1 "github.com/forewarm/forewarm/contract/proto/forewarm/v1"
)

// serve opens a session, carries it to its end, and says how it ended. What a holder runs is
// not logged: arguments hold secrets.
func (a *Attachment) serve(ctx context.Context, key obs.Secret, o *forewarmv1.OpenSession) {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx)) // how it ended is told when the daemon ends, too
	defer cancel()
	stream := a.api.Serve(own)
	defer endWith(own, stream)()
	stream.RequestHeader().Set("Authorization", "Bearer "+key.Reveal())
	s := &carrier{stream: stream, over: make(chan struct{})}
	if err := stream.Send(&forewarmv1.ServeRequest{SessionId: o.GetSessionId()}); err != nil {
		_, err = stream.Receive()
		a.Log.WarnContext(ctx, "a session did not reach the server", "error", err)
		return
	}
	log := a.Log.With("allocation", o.GetHold().GetAllocationId(), "port", o.GetPort().GetNumber())
	log.InfoContext(ctx, "session begins")
	from := time.Now() //nolint:forbidigo // how long it took, for the log
	end := a.run(ctx, o, s)
	log.InfoContext(ctx, "session ended", "after", time.Since(from).Round(time.Millisecond), //nolint:forbidigo // as above
		"exit_code", end.ExitCode, "code", end.Code, "reason", end.Reason)
	_ = s.Send(session.Result, end.Encode())
	_ = stream.CloseRequest()
	s.awaitEnd()
	cancel()
	_ = stream.CloseResponse()
}

// run does the work of a session.
func (a *Attachment) run(ctx context.Context, o *forewarmv1.OpenSession, s *carrier) session.End {
	select {
	case a.sessions <- struct{}{}:
		defer func() { <-a.sessions }()
	default:
		return session.End{Code: session.Refused, Reason: "the node has as many sessions as it takes"}
	}
	place, err := a.Holds.Open(holdOf(o.GetHold()))
	if err != nil {
		return session.End{Code: session.Refused, Reason: err.Error()}
	}
	switch w := o.GetWork().(type) {
	case *forewarmv1.OpenSession_Port:
		return a.Runner.Connect(ctx, int(w.Port.GetNumber()), s)
	case *forewarmv1.OpenSession_Command:
		return a.Runner.Run(ctx, place, commandOf(w.Command), s)
	default:
		return session.End{Code: session.Refused, Reason: "the node does not know what is asked of it: its daemon is older"}
	}
}

func holdOf(h *forewarmv1.Hold) hold.Hold {
	out := hold.Hold{AllocationID: h.GetAllocationId(), GPUUUIDs: h.GetGpuUuids(), Environment: h.GetEnvironment()}
	for _, i := range h.GetGpuIndices() {
		out.GPUIndices = append(out.GPUIndices, int(i))
	}
	return out
}

func commandOf(c *forewarmv1.Command) work.Command {
	out := work.Command{Arguments: c.GetArguments(), Directory: c.GetDirectory(), Environment: c.GetEnvironment()}
	if t := c.GetTerminal(); t != nil {
		size := session.Size{Columns: int(t.GetColumns()), Rows: int(t.GetRows())}
		out.Terminal = &work.Terminal{Name: t.GetName(), Size: size}
	}
	return out
}

// carrier is a session's stream of messages.
type carrier struct {
	stream *connect.BidiStreamForClient[forewarmv1.ServeRequest, forewarmv1.ServeResponse]
	over   chan struct{} // closed once nothing more comes

	receiving sync.Mutex
	ended     error
}

// Send implements work.Stream.
func (c *carrier) Send(channel session.Channel, data []byte) error {
	return c.stream.Send(&forewarmv1.ServeRequest{Frame: &forewarmv1.Frame{Channel: uint32(channel), Data: data}})
}

// Receive implements work.Stream.
func (c *carrier) Receive() (session.Channel, []byte, error) {
	c.receiving.Lock()
	defer c.receiving.Unlock()
	if c.ended != nil {
		return 0, nil, c.ended
	}
	got, err := c.stream.Receive()
	if err != nil {
		c.ended = err
		close(c.over)
		return 0, nil, err
	}
	f := got.GetFrame()
	return session.Channel(f.GetChannel()), f.GetData(), nil //nolint:gosec // another number is no channel either way
}

// awaitEnd waits until the server has read all, as its end of the stream says.
func (c *carrier) awaitEnd() {
	go func() { // work that did not begin receives nothing
		for {
			if _, _, err := c.Receive(); err != nil {
				return
			}
		}
	}()
	timer := time.NewTimer(closeWithin)
	defer timer.Stop()
	select {
	case <-c.over:
	case <-timer.C:
	}
}
