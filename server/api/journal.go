package api

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humagin"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/events"
	"github.com/forewarm/forewarm/server/operation"
	"github.com/forewarm/forewarm/server/problem"
)

func journalEndpoints(a *API) []endpoint {
	return []endpoint{
		serve(a, operation.Operation{ID: "listEvents", Method: http.MethodGet, Path: "/events", Tag: "journal",
			Policy: auth.Viewer, Summary: "List events, the oldest first"}, listEvents),
		serve(a, streamOperation, streamEvents),
	}
}

var streamOperation = operation.Operation{ID: "streamEvents", Method: http.MethodGet, Path: "/events/stream",
	Tag: "journal", Policy: auth.Viewer, Streams: true,
	Summary: "Follow events as server-sent events or lines of JSON, until the key ends"}

// EventFilter narrows the journal.
type EventFilter struct {
	OfOrganization
	After   int64  `query:"after" minimum:"0" doc:"Events after this sequence number."`
	Subject string `query:"subject" maxLength:"64"`
	Type    string `query:"type" maxLength:"64" doc:"A prefix, such as node. or reservation.ready"`
}

func (f EventFilter) toLedger() ledger.EventFilter {
	return ledger.EventFilter{After: f.After, Subject: f.Subject, Type: f.Type}
}

func listEvents(ctx context.Context, a *API, in *struct {
	EventFilter
	Limit int `query:"limit" minimum:"1" maximum:"500" default:"100"`
},
) (*struct{ Body contract.EventList }, error) {
	out := &struct{ Body contract.EventList }{contract.EventList{Items: []contract.Event{}, Next: in.After}}
	err := a.readSnapshot(ctx, func(r ledger.Reader) error {
		s, err := a.requestedScope(ctx, r, in.OfOrganization)
		if err != nil {
			return err
		}
		if err := checkAfter(r, "after", in.After); err != nil {
			return err
		}
		found, err := r.Events(s, in.toLedger(), in.Limit)
		for _, e := range found {
			out.Body.Items, out.Body.Next = append(out.Body.Items, events.Encode(e)), e.Seq
		}
		return err
	})
	return out, err
}

func streamEvents(ctx context.Context, a *API, in *struct {
	EventFilter
	LastEventID string `header:"Last-Event-ID" maxLength:"20" doc:"Resume after this one."`
},
) (*huma.StreamResponse, error) {
	filter, from := in.toLedger(), "after"
	if in.LastEventID != "" {
		last, err := strconv.ParseInt(in.LastEventID, 10, 64)
		if err != nil || last < 0 {
			return nil, problem.Parameter("Last-Event-ID", "must be the number of an event, as an id of the stream is")
		}
		filter.After, from = last, "Last-Event-ID"
	}
	var s ledger.Scope
	if err := a.readSnapshot(ctx, func(r ledger.Reader) (err error) {
		if s, err = a.requestedScope(ctx, r, in.OfOrganization); err != nil {
			return err
		}
		return checkAfter(r, from, filter.After)
	}); err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		c := humagin.Unwrap(ctx)
		a.Feed.Stream(c.Writer, c.Request, events.Following{
			Viewer: viewerOf(a, auth.From(c.Request.Context()).KeyID, s), Filter: filter, Name: a.nameEvents,
		})
	}}, nil
}

// checkAfter refuses to go on after an event that there is not, as after a restore of an older database: what came
// since would never be told.
func checkAfter(r ledger.Reader, name string, after int64) error {
	if after == 0 {
		return nil
	}
	end, err := r.JournalEnd()
	if err == nil && end > 0 && after > end {
		return problem.Parameter(name, fmt.Sprintf("must be the number of an event, of which the last is %d: "+
			"perhaps an older database was restored", end)).Request("Read anew what you follow, and go on after the last event")
	}
	return err
}

// Following is what whoever asks with a context may see of the events that match a filter, for as
// long as it may follow them.
func (a *API) Following(ctx context.Context, filter ledger.EventFilter) events.Following {
	actor := auth.From(ctx)
	return events.Following{Viewer: viewerOf(a, actor.KeyID, actor.Scope()), Filter: filter}
}

// nameEvents puts names beside the ids of a stream's events, as lists have them.
// An event that cannot be named now is sent without.
func (a *API) nameEvents(ctx context.Context, s ledger.Scope, sent []contract.Event) {
	if err := a.fillNames(ctx, s, sent); err != nil {
		a.Log.WarnContext(ctx, "events have no names", "operation", "streamEvents", "error", err)
	}
}

// viewerOf is what a key may see of a stream and wants to, for as long as the key
// may follow one.
func viewerOf(a *API, keyID string, wanted ledger.Scope) events.Viewer {
	return func(ctx context.Context) (ledger.Scope, time.Duration, error) {
		actor, holds, err := a.Auth.Watch(ctx, keyID)
		if err != nil {
			return ledger.Scope{}, 0, err
		}
		seen := actor.Scope()
		if seen.All {
			seen = wanted // it may see whatever it asks for, and only as long as it may
		}
		return seen, holds, streamOperation.Policy.Allow(actor)
	}
}
