package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/coder/websocket"
	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humagin"

	"github.com/forewarm/forewarm/contract"
	forewarmv1 "github.com/forewarm/forewarm/contract/proto/forewarm/v1"
	"github.com/forewarm/forewarm/contract/session"
	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/operation"
	"github.com/forewarm/forewarm/server/problem"
	"github.com/forewarm/forewarm/server/sessions"
	"github.com/forewarm/forewarm/server/telemetry"
)

const (
	beginWithin = 10 * time.Second // a user says what to run
	checkEvery  = time.Second      // whether its holder may go on is looked at
)

func sessionEndpoints(a *API) []endpoint {
	op := func(id, path, summary string) operation.Operation {
		return operation.Operation{ID: id, Method: http.MethodGet, Path: "/allocations/{id}/" + path, Tag: "bookings",
			Policy: auth.Member, Streams: true, Upgrades: true, Summary: summary}
	}
	return []endpoint{
		serve(a, op("execAllocation", "exec", "Run a command on a node of an allocation, over a WebSocket"), execAllocation),
		serve(a, op("connectAllocation", "port", "Connect to a TCP port of a node of an allocation, over a WebSocket"),
			connectAllocation),
	}
}

// SessionOf names the node of a session, and what a WebSocket's handshake does.
type SessionOf struct {
	ByID
	Node     int    `query:"node" minimum:"0" maximum:"100000" doc:"The rank of the node."`
	Upgrade  string `header:"Upgrade" maxLength:"64" doc:"websocket"`
	Protocol string `header:"Sec-WebSocket-Protocol" maxLength:"256" doc:"v1.session.forewarm"`
}

func execAllocation(ctx context.Context, a *API, in *struct{ SessionOf }) (*huma.StreamResponse, error) {
	return a.serveSession(ctx, in.SessionOf, "exec", func(ctx context.Context, user *websocket.Conn,
		open *forewarmv1.OpenSession) error {
		c, data, err := readFirst(ctx, user)
		if err != nil {
			return err
		}
		switch c {
		case session.Begin:
			command, err := session.ParseCommand(data)
			open.Work = &forewarmv1.OpenSession_Command{Command: encodeCommand(command)}
			return err
		case session.Resume:
			r, err := session.ParseResumption(data)
			open.Work = &forewarmv1.OpenSession_Resumption{
				Resumption: &forewarmv1.Resumption{ResumeId: r.ResumeID, Taken: r.Taken}}
			return err
		default:
			return fmt.Errorf("%w: the first one must say what to run, or to what you come back", session.ErrMessage)
		}
	})
}

func connectAllocation(ctx context.Context, a *API, in *struct {
	SessionOf
	Port int32 `query:"port" minimum:"1" maximum:"65535" required:"true" doc:"Of the node's loopback interface."`
},
) (*huma.StreamResponse, error) {
	return a.serveSession(ctx, in.SessionOf, "port", func(_ context.Context, _ *websocket.Conn,
		open *forewarmv1.OpenSession) error {
		open.Work = &forewarmv1.OpenSession_Port{Port: &forewarmv1.Port{Number: in.Port}}
		return nil
	})
}

// seated is a session that is about to begin: whose, and where.
type seated struct {
	allocationID, nodeID, keyID string
	until                       time.Time     // the lease's end by this process's clock
	patience                    time.Duration // how long its daemon may still take to come
}

// serveSession answers with a WebSocket, or says why there is no session. begin completes
// what is asked of the node.
func (a *API) serveSession(ctx context.Context, in SessionOf, kind string,
	begin func(context.Context, *websocket.Conn, *forewarmv1.OpenSession) error) (*huma.StreamResponse, error) {
	if !strings.EqualFold(in.Upgrade, "websocket") || !slices.Contains(protocolsIn(in.Protocol), session.Protocol) {
		return nil, problem.Parameter("Upgrade", "must be websocket, with the subprotocol "+session.Protocol)
	}
	s, open, err := a.seat(ctx, in)
	if err != nil {
		return nil, err
	}
	if err := a.awaitDaemon(ctx, s); err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		c := humagin.Unwrap(ctx)
		user, err := websocket.Accept(c.Writer, c.Request, &websocket.AcceptOptions{
			Subprotocols: []string{session.Protocol}})
		if err != nil {
			return // it has answered
		}
		defer func() { _ = user.CloseNow() }()
		user.SetReadLimit(session.MostData + 1)
		a.Sessions.Began(kind)
		end := a.runSession(c.Request.Context(), user, s, open, begin)
		a.Sessions.Ended(kind, end)
	}}, nil
}

// attachLook is how often a daemon is looked for that has yet to come.
const attachLook = 100 * time.Millisecond

// comesBack is how long a daemon may take to attach anew that has just reported, as after the
// end of the server that it was attached to: its first tries come within three and nine seconds.
const comesBack = 15 * time.Second

// awaitDaemon waits for the daemon of a node that may be new, or between two servers.
func (a *API) awaitDaemon(ctx context.Context, s seated) error {
	a.refreshTelemetry(ctx)
	if _, state := a.Telemetry.Of(s.nodeID); state == telemetry.Online {
		s.patience = max(s.patience, comesBack)
	}
	ctx, cancel := context.WithTimeout(ctx, max(s.patience, 0))
	defer cancel()
	tick := time.NewTicker(attachLook)
	defer tick.Stop()
	for {
		reached, err := a.Sessions.Reaches(context.WithoutCancel(ctx), s.nodeID)
		switch said, state := a.Telemetry.Of(s.nodeID); {
		case err != nil:
			return errors.Join(err, notAttached(s.nodeID, state))
		case reached:
			return nil
		case state == telemetry.Online && said.Look.Isolation == "":
			return takesNone(s.nodeID)
		case ctx.Err() != nil:
			return notAttached(s.nodeID, state)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

func protocolsIn(header string) []string {
	all := strings.Split(header, ",")
	for i := range all {
		all[i] = strings.TrimSpace(all[i])
	}
	return all
}

func notAttached(nodeID string, state telemetry.State) error {
	if state == telemetry.Online {
		return problem.New(contract.CodeNodeNotAttached, "The daemon of node "+nodeID+" reports, and no server that can "+
			"be asked has its stream: it is between two servers, reaches the control plane by HTTP/1 alone, or the servers "+
			"do not reach each other.").
			Fix("Try again in some seconds", "").
			Fix("Have an operator look at the daemon's log, and at server.peers_listen", "forewarm nodes show "+nodeID)
	}
	return problem.New(contract.CodeNodeNotAttached, "No daemon of node "+nodeID+" is in reach of the control plane.").
		Fix("See what is known of it", "forewarm nodes show "+nodeID).
		Fix("Have an operator start forewarm-node there: see docs/node.md", "")
}

// takesNone is the problem of a daemon that reports, and cannot or must not run commands.
func takesNone(nodeID string) error {
	return problem.New(contract.CodeNodeNotAttached, "The daemon of node "+nodeID+" takes no sessions: it is not root, "+
		"so that holders' commands would be its own user's, or sessions are turned off.").
		Fix("Have an operator run it as root, or set shared_user (forewarm up --shared-user)", "").
		Fix("Enter by the node's own way in, if it has one", "forewarm ssh")
}

// seat finds the node of a session, and whether the actor may enter it.
func (a *API) seat(ctx context.Context, in SessionOf) (seated, *forewarmv1.OpenSession, error) {
	actor := auth.From(ctx)
	s := seated{allocationID: in.ID, keyID: actor.KeyID}
	var open *forewarmv1.OpenSession
	err := a.readSnapshot(ctx, func(r ledger.Reader) error {
		got, err := r.Allocation(actor.Scope(), in.ID)
		if err != nil {
			return err
		}
		if err := enterable(actor, got); err != nil {
			return err
		}
		found, err := ledger.AccessTo(r, actor, got)
		switch {
		case err != nil:
			return err
		case found == nil: // its lease is over, which the planner is about to see
			return &ledger.StateError{Subject: got.ID, State: "over", Asked: "open a session"}
		case found.DevicesOnly:
			return problem.New(contract.CodePermissionDenied, "The pool names devices only, and lets nobody in.").
				Fix("Ask an operator about the pool's access policy", "")
		case in.Node >= len(found.Nodes):
			return problem.Parameter("node", fmt.Sprintf("must be below %d, the number of its nodes", len(found.Nodes)))
		}
		s.nodeID = found.Nodes[in.Node].NodeID
		s.until = a.Clock.Now().Add(got.LeaseUntil.Sub(r.Now()))
		s.patience = a.NewDaemon - r.Now().Sub(got.ActiveAt)
		open = &forewarmv1.OpenSession{Hold: encodeHold(got, encodeAccess(got, *found).Nodes[in.Node])}
		open.Hold.LeaseSeconds = leftSeconds(got.LeaseUntil.Sub(r.Now()))
		return nil
	})
	return s, open, err
}

// enterable says why nobody, or not this actor, may enter an allocation.
func enterable(actor ledger.Actor, got allocation.Allocation) error {
	switch {
	case !actor.MayEnter(got.OrganizationID):
		return ledger.ErrDenied
	case got.Observed():
		return &ledger.ObservedPoolError{Pool: got.PoolID, Asked: "open a session"}
	case got.State() != allocation.Active:
		return &ledger.StateError{Subject: got.ID, State: string(got.State()), Asked: "open a session"}
	}
	return nil
}

func encodeHold(a allocation.Allocation, n contract.NodeAccess) *forewarmv1.Hold {
	h := &forewarmv1.Hold{AllocationId: a.ID, GpuUuids: n.GPUUUIDs, Environment: n.Environment}
	if s := n.Shares; s != nil {
		h.Shares, h.SharesPerGpu = int32(s.Held), int32(s.PerGPU) //nolint:gosec // a machine has few
	}
	for _, i := range n.GPUIndices {
		h.GpuIndices = append(h.GpuIndices, int32(i)) //nolint:gosec // a machine has few
	}
	return h
}

// readFirst reads what the user wants.
func readFirst(ctx context.Context, user *websocket.Conn) (session.Channel, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, beginWithin)
	defer cancel()
	_, message, err := user.Read(ctx)
	if err != nil {
		return 0, nil, fmt.Errorf("reading what to run: %w", err)
	}
	return session.ParseMessage(message)
}

func encodeCommand(c session.Command) *forewarmv1.Command {
	out := &forewarmv1.Command{Arguments: c.Arguments, Directory: c.Directory, Environment: c.Environment,
		ResumeId: c.ResumeID}
	if t := c.Terminal; t != nil {
		out.Terminal = &forewarmv1.Terminal{Name: t.Name,
			Columns: int32(t.Columns), Rows: int32(t.Rows)} //nolint:gosec // bounded by session.MostCells
	}
	return out
}

// runSession opens a session whose user is there, and carries it to its end.
func (a *API) runSession(ctx context.Context, user *websocket.Conn, s seated, open *forewarmv1.OpenSession,
	begin func(context.Context, *websocket.Conn, *forewarmv1.OpenSession) error) session.End {
	actor := auth.From(ctx)
	err := begin(ctx, user, open)
	if err == nil { // the user took a while to say what to run
		if end, over := a.checkSession(ctx, &s); over {
			sessions.Tell(ctx, user, end)
			return end
		}
		a.refreshTelemetry(ctx) // its daemon may report to another server
		said, _ := a.Telemetry.Of(s.nodeID)
		err = a.Ledger.OpenHold(ctx, actor, s.allocationID, s.nodeID, capacity.Isolation(said.Look.Isolation))
	}
	var node sessions.Conn
	if err == nil {
		node, err = a.Sessions.Open(ctx, s.nodeID, open)
	}
	if err != nil {
		end := session.End{Code: session.Refused, Reason: reasonOf(err)}
		sessions.Tell(ctx, user, end)
		return end
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	end := sessions.Carry(ctx, user, node, a.watchSession(ctx, s), func(said session.End) session.End {
		return judgeEnd(ctx, a, s, said)
	})
	if end.Code == session.LeaseOver {
		a.Sessions.Ask(s.nodeID) // to end what else of it runs there, and to prove that nothing is left
	}
	return end
}

// reasonOf is what a user is told of an error.
func reasonOf(err error) string {
	p, told := problem.From(err)
	switch {
	case errors.Is(err, sessions.ErrNotAttached), errors.Is(err, sessions.ErrNoAnswer),
		errors.Is(err, session.ErrMessage):
		return err.Error()
	case told || p.Detail != "":
		return p.Detail
	}
	return "it could not be opened"
}
