package api

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humagin"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/events"
	"github.com/forewarm/forewarm/server/problem"
)

func (a *API) registerJournal() {
	registerOperation(a, operation{http.MethodGet, "/events", "listEvents", "journal", "What happened, oldest first", 0},
		a.listEvents)
	registerOperation(a, operation{http.MethodGet, "/events/stream", "streamEvents", "journal",
		"What happens, as server-sent events or lines of JSON, until the key ends", 0}, a.streamEvents)
	registerOperation(a, operation{http.MethodGet, "/reports/costs", "costs", "journal",
		"What machines cost in a period, by who pays and why", 0}, a.reportCosts)
	registerOperation(a, operation{http.MethodGet, "/reports/summary", "summary", "journal",
		"Zero-wait rate and idle waste of a period", 0}, a.reportSummary)
}

// EventFilter narrows the journal.
type EventFilter struct {
	OfOrganization
	After   int64  `query:"after" minimum:"0" doc:"Events after this sequence number."`
	Subject string `query:"subject" maxLength:"64"`
	Type    string `query:"type" maxLength:"64" doc:"A beginning, such as node. or reservation.ready"`
}

func (f EventFilter) toLedger() ledger.EventFilter {
	return ledger.EventFilter{After: f.After, Subject: f.Subject, Type: f.Type}
}

func (a *API) listEvents(ctx context.Context, in *struct {
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
		found, err := r.Events(s, in.toLedger(), in.Limit)
		for _, e := range found {
			out.Body.Items, out.Body.Next = append(out.Body.Items, events.Encode(e)), e.Seq
		}
		return err
	})
	return out, err
}

func (a *API) streamEvents(ctx context.Context, in *struct {
	EventFilter
	LastEventID string `header:"Last-Event-ID" maxLength:"20" doc:"Resume after this one."`
},
) (*huma.StreamResponse, error) {
	filter := in.toLedger()
	if in.LastEventID != "" {
		last, err := strconv.ParseInt(in.LastEventID, 10, 64)
		if err != nil || last < 0 {
			return nil, problem.Parameter("Last-Event-ID", "must be the number of an event, as an id of the stream is")
		}
		filter.After = last
	}
	var s ledger.Scope
	if err := a.readSnapshot(ctx, func(r ledger.Reader) (err error) {
		s, err = a.requestedScope(ctx, r, in.OfOrganization)
		return err
	}); err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		c := humagin.Unwrap(ctx)
		a.Feed.Stream(c.Writer, c.Request, events.Following{
			Viewer: a.viewerOf(auth.From(c.Request.Context()).KeyID, s), Filter: filter, Name: a.nameEvents,
		})
	}}, nil
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
func (a *API) viewerOf(keyID string, wanted ledger.Scope) events.Viewer {
	return func(ctx context.Context) (ledger.Scope, time.Duration, error) {
		actor, holds, err := a.Auth.Watch(ctx, keyID)
		if err != nil {
			return ledger.Scope{}, 0, err
		}
		seen := actor.Scope()
		if seen.All {
			seen = wanted // it may see whatever it asks for, and only as long as it may
		}
		return seen, holds, auth.Policies["GET /v1/events/stream"].Allow(actor)
	}
}

// reportPeriod is what a report covers unless asked otherwise.
const reportPeriod = 7 * 24 * time.Hour

func (a *API) reportSummary(ctx context.Context, in *struct {
	OfOrganization
	From time.Time `query:"from" doc:"Seven days before to, when left out."`
	To   time.Time `query:"to" doc:"Now, when left out."`
},
) (*One[contract.Report], error) {
	to := in.To
	if to.IsZero() {
		to = a.Clock.Now()
	}
	from, to, err := parsePeriod(in.From, to, to.Add(-reportPeriod), to)
	if err != nil {
		return nil, err
	}
	var out contract.Report
	err = a.readSnapshot(ctx, func(r ledger.Reader) error {
		s, err := a.requestedScope(ctx, r, in.OfOrganization)
		if err != nil {
			return err
		}
		got, err := r.Report(s, from, to)
		out = encodeReport(got, s.All)
		return err
	})
	return &One[contract.Report]{Body: out}, err
}

// encodeReport returns a report as it goes over the wire; whole is one of the whole
// installation.
func encodeReport(r ledger.Report, whole bool) contract.Report {
	out := contract.Report{
		From: r.From.UTC(), To: r.To.UTC(), Starts: r.Starts, ZeroWaitStarts: r.ZeroWaits, P95Wait: r.WaitP95.Seconds(),
		BusyCost: formatMoney(r.BusyCost), BusyGPUHours: r.BusyHours,
	}
	if whole {
		addWaste(&out, r)
	}
	if r.Starts > 0 {
		rate := float64(r.ZeroWaits) / float64(r.Starts)
		out.ZeroWaitRate, out.MeanWait = &rate, (r.WaitTotal / time.Duration(r.Starts)).Seconds()
	}
	return out
}

// addWaste adds what nodes cost that did not compute.
func addWaste(out *contract.Report, r ledger.Report) {
	spent, waste, idle, boot := formatMoney(r.Spent()), formatMoney(r.IdleWaste()), formatMoney(r.IdleCost), formatMoney(r.BootCost)
	minimum, orphans := formatMoney(r.MinBillingCost), formatMoney(r.OrphanCost)
	out.TotalCost, out.IdleWaste, out.IdleCost, out.BootCost = &spent, &waste, &idle, &boot
	out.MinBillingCost, out.OrphanCost = &minimum, &orphans
	out.IdleGPUHours, out.BootGPUHours = &r.IdleHours, &r.BootHours
	if all := r.Spent(); all > 0 {
		share := float64(r.IdleWaste()) / float64(all)
		out.IdleWasteShare = &share
	}
}
