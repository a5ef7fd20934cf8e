package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/operation"
	"github.com/forewarm/forewarm/server/problem"
)

func calendarEndpoints(a *API) []endpoint {
	return []endpoint{
		serve(a, operation.Operation{ID: "getCalendar", Method: http.MethodGet, Path: "/pools/{id}/calendar",
			Tag: "bookings", Policy: auth.Viewer, Summary: "Show when a pool has free capacity"}, getCalendar),
		serve(a, operation.Operation{ID: "adviseCalendar", Method: http.MethodPost, Path: "/advice/calendar",
			Tag: "bookings", Policy: auth.Member, Summary: "Find windows in which a request fits"},
			adviseCalendar),
	}
}

// shownAhead is how far a calendar goes unless asked otherwise.
const shownAhead = 24 * time.Hour

func getCalendar(ctx context.Context, a *API, in *struct {
	ByID
	From        time.Time `query:"from" doc:"Now, when left out."`
	To          time.Time `query:"to" doc:"A day after from, when left out."`
	StepSeconds int64     `query:"step_seconds" minimum:"0" maximum:"31536000" default:"3600"`
},
) (*One[contract.Calendar], error) {
	from := in.From
	if from.IsZero() {
		from = a.Clock.Now()
	}
	from, to, err := parsePeriod(from, in.To, from, from.Add(shownAhead))
	if err != nil {
		return nil, err
	}
	if step := seconds(in.StepSeconds); step > 0 && to.Sub(from)/step >= calendar.MaxLevels {
		least := to.Sub(from)/calendar.MaxLevels/time.Second + 1
		return nil, problem.Parameter("step_seconds",
			fmt.Sprintf("must be at least %d s, or 0: the answer would have too many steps", least))
	}
	got, err := a.Ledger.FreeBusy(ctx, in.ID, from, to, seconds(in.StepSeconds))
	if err != nil {
		return nil, err
	}
	out := contract.Calendar{PoolID: got.Pool.ID, From: from, To: to, StepSeconds: in.StepSeconds,
		Steps: make([]contract.CalendarStep, len(got.Steps))}
	for i, s := range got.Steps {
		out.Steps[i] = encodeStep(s)
	}
	return &One[contract.Calendar]{Body: out}, nil
}

func encodeStep(s ledger.FreeStep) contract.CalendarStep {
	out := contract.CalendarStep{Start: s.Start.UTC(), End: s.End.UTC(), FreeGPUs: s.FreeGPUs, FreeNodes: s.FreeSlots,
		Largest: contract.Shape{GPUs: s.Largest.GPUs(), Nodes: s.Largest.Nodes, GPUsPerNode: s.Largest.PerNode}}
	for _, w := range s.Workloads {
		out.Workloads = append(out.Workloads, contract.WorkloadLevel{Workload: string(w.Workload), Share: w.Share,
			Used: w.Used, Free: w.Free})
	}
	return out
}

func adviseCalendar(ctx context.Context, a *API, in *struct {
	Body contract.CalendarAdviceRequest
},
) (*One[contract.CalendarAdvice], error) {
	b := in.Body
	req := ledger.ReserveRequest{Pool: b.Pool, Model: b.Model, Needs: decodeNeeds(b.Needs), GPUs: b.GPUs,
		Layout: decodeLayout(b.Layout),
		Class:  reservation.Class(b.Class), Workload: capacity.Workload(b.Workload),
		Range: decodeTimeRange(contract.TimeRange{StartTimeNotEarlierThan: b.StartTimeNotEarlierThan,
			StartTimeNotLaterThan: b.StartTimeNotLaterThan,
			EndTimeNotEarlierThan: b.EndTimeNotEarlierThan, EndTimeNotLaterThan: b.EndTimeNotLaterThan,
			MinDurationSeconds: b.MinDurationSeconds, MaxDurationSeconds: cmp.Or(b.MaxDurationSeconds,
				b.MinDurationSeconds)})}
	if err := notTooFar(a.Clock.Now(), "start_time_not_earlier_than", b.StartTimeNotEarlierThan); err != nil {
		return nil, err
	}
	found, err := a.Ledger.Advise(ctx, auth.From(ctx), req, b.Limit)
	out := contract.CalendarAdvice{Recommendations: []contract.Recommendation{}}
	if refused, ok := errors.AsType[*ledger.RefusedError](err); ok {
		out.Blockers = problem.Blockers(refused)
		return &One[contract.CalendarAdvice]{Body: out}, nil
	}
	for _, r := range found {
		out.Recommendations = append(out.Recommendations,
			contract.Recommendation{PoolID: r.PoolID, GPUs: r.Shape.GPUs(), Nodes: r.Shape.Nodes,
				GPUsPerNode: r.Shape.PerNode, Start: r.Window.Start.UTC(), End: r.Window.End.UTC(),
				Cost: formatMoney(r.Cost)})
	}
	return &One[contract.CalendarAdvice]{Body: out}, err
}

func decodeTimeRange(r contract.TimeRange) calendar.TimeRange {
	return calendar.TimeRange{
		StartNotEarlierThan: truncateTime(r.StartTimeNotEarlierThan),
		StartNotLaterThan:   truncateTime(r.StartTimeNotLaterThan),
		EndNotEarlierThan:   truncateTime(r.EndTimeNotEarlierThan),
		EndNotLaterThan:     truncateTime(r.EndTimeNotLaterThan),
		MinDuration:         seconds(r.MinDurationSeconds), MaxDuration: seconds(r.MaxDurationSeconds),
	}
}
