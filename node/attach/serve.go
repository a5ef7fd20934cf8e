package attach

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"

	"github.com/forewarm/forewarm/contract/session"
	"github.com/forewarm/forewarm/node/hold"
	"github.com/forewarm/forewarm/node/supervise"
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
	log.InfoContext(ctx, "session begins", "again", o.GetResumption() != nil)
	from := time.Now() //nolint:forbidigo // how long it took, for the log
	proving := s.keepProving(running, a.SignEvery)
	end := a.run(running, o, s)
	proving()
	if ctx.Err() != nil && (end.Code == session.UserLeft || o.GetPort() != nil) {
		end = session.End{Code: session.NodeLost, Reason: "the node's daemon ended, as for another version of it"}
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
	if w, ok := o.GetWork().(*forewarmv1.OpenSession_Resumption); ok { // it has its place already
		return a.carry(ctx, o.GetHold().GetAllocationId(), w.Resumption, s)
	}
	_, port := o.GetWork().(*forewarmv1.OpenSession_Port)
	leave, err := a.places.enter(o.GetHold().GetAllocationId(), port)
	if err != nil {
		return session.End{Code: session.Refused, Reason: err.Error()}
	}
	leave = sync.OnceFunc(leave)
	place, err := a.Holds.Open(holdOf(o.GetHold()))
	if err != nil {
		leave()
		return session.End{Code: session.Refused, Reason: err.Error()}
	}
	switch w := o.GetWork().(type) {
	case *forewarmv1.OpenSession_Port:
		defer leave()
		return a.Runner.Connect(ctx, place, int(w.Port.GetNumber()), s)
	case *forewarmv1.OpenSession_Command:
		resumption, end := a.start(o.GetHold().GetAllocationId(), place, w.Command, leave)
		if resumption == nil {
			leave()
			return end
		}
		return a.carry(ctx, o.GetHold().GetAllocationId(), resumption, s)
	default:
		leave()
		return session.End{Code: session.Refused, Reason: "the node does not know what is asked of it: its daemon is older"}
	}
}

// start has a command supervised, which leaves its place once it has ended. Without a resumption nothing runs, for
// the reason that the end has.
func (a *Attachment) start(allocationID string, place hold.Place, c *forewarmv1.Command, leave func()) (
	*forewarmv1.Resumption, session.End) {
	order := supervise.Order{Place: place, Command: commandOf(c), Runner: a.Runner}
	resumeID := c.GetResumeId()
	if resumeID == "" {
		resumeID = session.NewResumeID()
	} else {
		order.Patience = a.Patience
	}
	began, err := a.Holds.Begin(allocationID)
	if err != nil {
		return nil, session.End{Code: session.Refused, Reason: err.Error()}
	}
	defer began()
	watch, err := a.Supervisors.Start(allocationID, resumeID, order)
	if err != nil {
		return nil, session.End{Code: session.NotStarted, Reason: err.Error()}
	}
	a.keepPlace(watch, leave)
	return &forewarmv1.Resumption{ResumeId: resumeID}, session.End{}
}

// keepPlace leaves a place once a supervisor has ended, unless the daemon does before. It ends once the holder knows
// how the command ended: who never says so has no more places than others.
func (a *Attachment) keepPlace(w *supervise.Watch, leave func()) {
	a.open.Go(func() {
		select {
		case <-w.Gone():
			leave()
		case <-a.ended:
			w.Close()
		}
	})
}

// userLeft is the end of what carries a session no more.
var userLeft = session.End{Code: session.UserLeft, Reason: "its connection ended"}

// carry carries what a command and its holder say to each other, until either has no more to say.
func (a *Attachment) carry(ctx context.Context, allocationID string, r *forewarmv1.Resumption, s *carrier) session.End {
	line, err := a.Supervisors.Resume(allocationID, r.GetResumeId(), r.GetTaken())
	if err != nil {
		return session.End{Code: session.NotThere, Reason: err.Error()}
	}
	stop := context.AfterFunc(ctx, line.Close)
	s.handOn(line)
	for {
		c, data, err := line.Receive()
		if err != nil {
			return a.whyCut(ctx, s, allocationID, r.GetResumeId())
		}
		if c == session.Result {
			stop() // that the holder knows is handed on, also when the daemon ends
			end, err := session.ParseEnd(data)
			if err != nil {
				end = session.End{Code: session.NodeLost, Reason: "how it ended cannot be read"}
			}
			return end
		}
		if s.Send(c, data) != nil {
			return userLeft
		}
	}
}

var (
	// supervisorGone is the end of a command whose supervisor is there no more.
	supervisorGone = session.End{Code: session.NotThere, Reason: "the process that ran the command on the node was " +
		"killed, and the command was hung up with it, or another connection was told how it ended"}
	// lineTaken is the end of a connection to a command whose supervisor goes on without it.
	lineTaken = session.End{Code: session.Refused, Reason: "another connection has come for the command, or this one " +
		"said of what it has taken what cannot be"}
)

// whyCut says why nothing more comes from a command.
func (a *Attachment) whyCut(ctx context.Context, c *carrier, allocationID, resumeID string) session.End {
	select {
	case <-ctx.Done():
		return userLeft
	case <-c.over:
		return userLeft
	default:
	}
	switch {
	case c.hungUp.Load():
		return userLeft
	case a.Supervisors.Has(allocationID, resumeID):
		return lineTaken
	}
	return supervisorGone
}

func holdOf(h *forewarmv1.Hold) hold.Hold {
	out := hold.Hold{AllocationID: h.GetAllocationId(), GPUUUIDs: h.GetGpuUuids(), Environment: h.GetEnvironment(),
		Shares: hold.Shares{Held: int(h.GetShares()), PerGPU: int(h.GetSharesPerGpu())},
		Lease:  time.Duration(h.GetLeaseSeconds()) * time.Second}
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
	handed    bool        // somebody receives, to the end
	hungUp    atomic.Bool // the holder has said so
}

// handOn has a line get what the holder sends, to the stream's end, which may be later than the line's.
func (c *carrier) handOn(line *session.Line) {
	c.handed = true
	go func() { // it ends with the stream
		defer line.Close()
		for {
			channel, data, err := c.Receive()
			if err != nil {
				return
			}
			if channel == session.HangUp {
				c.hungUp.Store(true)
			}
			_ = line.Send(channel, data) // whoever receives from it knows why
		}
	}()
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
	if !c.handed { // work that did not begin receives nothing
		go func() {
			for {
				if _, _, err := c.Receive(); err != nil {
					return
				}
			}
		}()
	}
	timer := time.NewTimer(closeWithin)
	defer timer.Stop()
	select {
	case <-c.over:
	case <-timer.C:
	}
}
