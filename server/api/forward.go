package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/operation"
	"github.com/forewarm/forewarm/server/peers"
	"github.com/forewarm/forewarm/server/problem"
)

// forwarded lets other servers have a change decided here.
func forwarded[B, T, C any](a *API, c operation.Change[B, T, C], e endpoint) endpoint {
	if !c.SharesTransactions() {
		return e
	}
	register := e.register
	e.register = func() {
		a.answers[c.ID] = func(ctx context.Context, call *peers.Call) peers.Reply {
			v := operation.Viewer{Actor: call.Actor, Now: call.At}
			status, body, replayed, err := c.AnswerForwarded(ctx, a.Ledger, v, call.Key, call.Body)
			if err != nil {
				return a.failedReply(ctx, c.Operation, err)
			}
			return peers.Reply{Status: status, Body: body, Replayed: replayed}
		}
		register()
	}
	return e
}

// Answer decides what another server was asked. It does not panic.
func (a *API) Answer(ctx context.Context, call *peers.Call) (p peers.Reply) {
	ctx = auth.With(obs.WithAttrs(ctx, slog.String(requestAttr, call.Request)), call.Actor)
	op := operation.Operation{ID: call.Operation}
	defer func() {
		if v := recover(); v != nil {
			p = a.failedReply(ctx, op, fmt.Errorf("panic: %v\n%s", v, debug.Stack()))
		}
	}()
	answer, ok := a.answers[call.Operation]
	if !ok {
		return a.failedReply(ctx, op, fmt.Errorf("another server asks for %q, which there is not", call.Operation))
	}
	return answer(ctx, call)
}

// failedReply tells the other server why. What the path named is for that one to say.
func (a *API) failedReply(ctx context.Context, op operation.Operation, err error) peers.Reply {
	if ctx.Err() != nil { // nobody reads it: it was withdrawn, or is too late
		return peers.Reply{Status: http.StatusServiceUnavailable, Failed: true}
	}
	op.Path = ""
	err = a.toProblem(ctx, op, "", err)
	p, ok := errors.AsType[*problem.Problem](err)
	if !ok {
		p, _ = problem.From(err)
	}
	body, err := json.Marshal(p.Problem)
	if err != nil { // a fix that cannot be encoded would be our own mistake
		body, _ = json.Marshal(problem.New(contract.CodeInternal, "").Problem)
	}
	return peers.Reply{Status: p.Status, Failed: true, Body: body}
}

// decide has a request decided by the server that decides for all, or here if that is
// this one, or it does not reply.
func decide[B, T, C any](ctx context.Context, a *API, c operation.Change[B, T, C], v operation.Viewer, key string,
	r operation.Request[B]) (operation.Answer[C], error) {
	reply, err := askOther(ctx, a, c, v, key, r)
	switch {
	case err == nil:
		return decodeReply[C](reply)
	case errors.Is(err, peers.ErrLost) && (key == "" || ctx.Err() != nil):
		return operation.Answer[C]{}, fmt.Errorf("%w: %w", err, ledger.ErrOutcomeUnknown)
	case errors.Is(err, peers.ErrLost), errors.Is(err, peers.ErrNobody):
		return c.Once(ctx, a.Ledger, v, key, r)
	default:
		return operation.Answer[C]{}, err
	}
}

// askOther asks the server that decides: peers.ErrNobody if that is this one, or if no
// other may decide this.
func askOther[B, T, C any](ctx context.Context, a *API, c operation.Change[B, T, C], v operation.Viewer, key string,
	r operation.Request[B]) (peers.Reply, error) {
	if !a.Peers.IsFollower() {
		return peers.Reply{}, peers.ErrNobody
	}
	sent, ok := c.MayForward(r)
	if !ok {
		return peers.Reply{}, peers.ErrNobody
	}
	return a.Peers.Ask(ctx, &peers.Call{Operation: c.ID, Actor: v.Actor, Key: key, Request: requestOf(ctx), At: v.Now,
		Body: sent})
}

// decodeReply is the answer that another server gave, or the problem that it told.
func decodeReply[C any](reply peers.Reply) (out operation.Answer[C], err error) {
	if reply.Failed {
		p := &problem.Problem{}
		if err := json.Unmarshal(reply.Body, &p.Problem); err != nil || p.Status != reply.Status {
			return out, fmt.Errorf("another server told a problem of status %d that cannot be read: %w", reply.Status,
				ledger.ErrOutcomeUnknown)
		}
		return out, p
	}
	out.Status, out.Replayed = reply.Status, reply.Replayed
	if err := operation.DecodeJSON(reply.Body, &out.Body); err != nil {
		return out, fmt.Errorf("decoding another server's answer: %w", err)
	}
	return out, nil
}

// requestAttr is the attribute of a request's id in the log.
const requestAttr = "request"

// requestOf is the id of the request that ctx serves, as the log has it.
func requestOf(ctx context.Context) string {
	for _, a := range obs.Attrs(ctx) {
		if a.Key == requestAttr {
			return a.Value.String()
		}
	}
	return ""
}
