package attach

import (
	"context"
	"sync"
	"time"

	"connectrpc.com/connect"

	"github.com/forewarm/forewarm/contract/session"
	"github.com/forewarm/forewarm/node/hold"
	"github.com/forewarm/forewarm/node/work"

	forewarmv1 "github.com/forewarm/forewarm/contract/proto/forewarm/v1"
)

// serve opens a session, carries it to its end, and says how it ended. What a holder runs is
// not logged: arguments hold secrets.
func (a *Attachment) serve(ctx context.Context, o *forewarmv1.OpenSession) {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx)) // how it ended is told when the daemon ends, too
	defer cancel()
	stream := a.api.Serve(own)
	defer endWith(own, stream)()
	stream.RequestHeader().Set("Authorization", "Bearer "+a.Key().Reveal()) // as it is by now
	running, hangUp := context.WithCancel(ctx)
	defer hangUp()
	s := &carrier{stream: stream, over: make(chan struct{}), hangUp: hangUp}
	if err := stream.Send(&forewarmv1.ServeRequest{SessionId: o.GetSessionId()}); err != nil {
		_, err = stream.Receive()
		a.Log.WarnContext(ctx, "a session did not reach the server", "error", err)
		return
	}
	log := a.Log.With("allocation", o.GetHold().GetAllocationId(), "port", o.GetPort().GetNumber())
	log.InfoContext(ctx, "session begins")
	from := time.Now() //nolint:forbidigo // how long it took, for the log
	proving := s.keepProving(running, a.SignEvery)
	end := a.run(running, o, s)
	proving()
	if ctx.Err() != nil && end.Reason != "" {
		end.Reason = "the node's daemon ended, as for another version of it, and hung it up; a job would go on"
	}
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
	_, port := o.GetWork().(*forewarmv1.OpenSession_Port)
	leave, err := a.places.enter(o.GetHold().GetAllocationId(), port)
	if err != nil {
		return session.End{Code: session.Refused, Reason: err.Error()}
	}
	defer leave()
	place, err := a.Holds.Open(holdOf(o.GetHold()))
	if err != nil {
		return session.End{Code: session.Refused, Reason: err.Error()}
	}
	switch w := o.GetWork().(type) {
	case *forewarmv1.OpenSession_Port:
		return a.Runner.Connect(ctx, place, int(w.Port.GetNumber()), s)
	case *forewarmv1.OpenSession_Command:
		began, err := a.Holds.Begin(o.GetHold().GetAllocationId())
		if err != nil {
			return session.End{Code: session.Refused, Reason: err.Error()}
		}
		p, err := work.Start(place, commandOf(w.Command))
		if began(); err != nil {
			return session.End{Code: session.NotStarted, Reason: err.Error()}
		}
		return a.Runner.Carry(ctx, p, s)
	default:
		return session.End{Code: session.Refused, Reason: "the node does not know what is asked of it: its daemon is older"}
	}
}

func holdOf(h *forewarmv1.Hold) hold.Hold {
	out := hold.Hold{AllocationID: h.GetAllocationId(), GPUUUIDs: h.GetGpuUuids(), Environment: h.GetEnvironment(),
		Shares: hold.Shares{Held: int(h.GetShares()), PerGPU: int(h.GetSharesPerGpu())}}
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
	hangUp func()        // ends the work: nothing more can be sent

	sending   sync.Mutex
	receiving sync.Mutex
	ended     error
}

// Send implements work.Stream.
func (c *carrier) Send(channel session.Channel, data []byte) error {
	c.sending.Lock()
	defer c.sending.Unlock()
	err := c.stream.Send(&forewarmv1.ServeRequest{Frame: &forewarmv1.Frame{Channel: uint32(channel), Data: data}})
	if err != nil {
		c.hangUp()
	}
	return err
}

// keepProving sends nothing in a message, now and then, until the context ends or stop is
// called: while the holder sends more than the work reads, only what cannot be sent shows that
// the session is over.
func (c *carrier) keepProving(ctx context.Context, every time.Duration) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	all.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if c.Send(session.Stdout, nil) != nil {
				return
			}
		}
	})
	return func() {
		cancel()
		all.Wait()
	}
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
