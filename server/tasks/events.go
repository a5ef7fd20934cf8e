package tasks

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"

	"github.com/forewarm/forewarm/contract"
	forewarmv1 "github.com/forewarm/forewarm/contract/proto/forewarm/v1"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/server/inward"
	"github.com/forewarm/forewarm/server/problem"
)

// ofTasks is what the types of their events begin with.
const ofTasks = "job."

// TaskEvents implements TaskService.
func (s *service) TaskEvents(ctx context.Context, r *connect.Request[forewarmv1.TaskEventsRequest],
	stream *connect.ServerStream[forewarmv1.TaskEventsResponse]) error {
	filter := ledger.EventFilter{After: r.Msg.GetAfterSequence(), Type: ofTasks}
	if filter.After < 0 {
		return s.refused(ctx, problem.Invalid("after_sequence", "must not be negative", ""))
	}
	if filter.After > 0 { // is there such an event?
		query := url.Values{"after": {strconv.FormatInt(filter.After, 10)}, "limit": {"1"}}
		if _, err := s.API.Ask(ctx, inward.Request{Method: http.MethodGet, Path: "/v1/events", Query: query},
			&contract.EventList{}); err != nil {
			return s.refused(ctx, renameSequence(err))
		}
	}
	if id := r.Msg.GetTaskId(); id != "" {
		task, err := s.findTask(ctx, id)
		if err != nil {
			return s.refused(ctx, err)
		}
		filter.Subject = task.ID
	}
	return s.follow(ctx, filter, &follower{extend: extendOf(ctx),
		begin: func() error { return stream.Send(nil) },
		send:  func(e contract.Event) error { return stream.Send(encodeEvent(e)) },
		beat: func(after int64) error {
			return stream.Send(&forewarmv1.TaskEventsResponse{Sequence: after})
		}})
}

// renameSequence has a problem name the sequence that was sent.
func renameSequence(err error) error {
	p, ok := err.(*problem.Problem) //nolint:errorlint // it is the API's own answer
	if ok && len(p.Errors) > 0 && p.Errors[0].Pointer == "after" {
		p.Errors[0].Pointer, p.Detail = "after_sequence", "after_sequence"+strings.TrimPrefix(p.Detail, "after")
	}
	return err
}

// follow follows events for a caller until one of them leaves.
func (s *service) follow(ctx context.Context, filter ledger.EventFilter, to *follower) error {
	to.extend()
	if err := to.begin(); err != nil {
		return err
	}
	s.Feed.Follow(ctx, to, s.Follow(ctx, filter))
	if to.ended == nil && ctx.Err() == nil {
		return connect.NewError(connect.CodeUnavailable, errors.New("the server ends: follow another one"))
	}
	return to.ended
}

// follower is a caller who follows events.
type follower struct {
	extend func()
	begin  func() error // sends the headers: the caller is followed for
	send   func(contract.Event) error
	beat   func(after int64) error
	ended  error
}

// Send implements events.Receiver.
func (f *follower) Send(found []contract.Event) error {
	for _, e := range found {
		f.extend()
		if err := f.send(e); err != nil {
			return err
		}
	}
	return nil
}

// Beat implements events.Receiver.
func (f *follower) Beat(after int64) error {
	f.extend()
	return f.beat(after)
}

// End implements events.Receiver.
func (f *follower) End(_ int64, code, text string) { f.ended = Refusal(problem.New(code, text)) }

func encodeEvent(e contract.Event) *forewarmv1.TaskEventsResponse {
	return &forewarmv1.TaskEventsResponse{Sequence: e.Seq, TaskId: e.Subject, State: states[stateOf(e)], Type: e.Type,
		Reason: e.Reason, Message: e.Message, AtMs: millis(e.Time)}
}

// stateOf is the state that an event of a job leads to, if it leads to one.
func stateOf(e contract.Event) string {
	state := strings.TrimPrefix(e.Type, ofTasks)
	if state == "submitted" {
		return contract.JobPending
	}
	return state
}

type extendKey struct{}

// WithExtend returns a context for a call of the handler, with what gives its caller time to take
// the next part of a stream.
func WithExtend(ctx context.Context, extend func()) context.Context {
	return context.WithValue(ctx, extendKey{}, extend)
}

func extendOf(ctx context.Context) func() {
	if extend, ok := ctx.Value(extendKey{}).(func()); ok {
		return extend
	}
	return func() {}
}

// TakeWithin is how long a caller may take to read a part of a stream.
const TakeWithin = 30 * time.Second
