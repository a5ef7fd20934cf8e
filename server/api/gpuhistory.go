package api

import (
	"context"
	"time"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/problem"
)

// historyKept is how far back a history goes.
const historyKept = 24 * time.Hour

func getGPUHistory(ctx context.Context, a *API, in *struct {
	ByUUID
	Since       time.Time `query:"since" doc:"A day ago, when left out, and at the earliest."`
	StepSeconds int64     `query:"step_seconds" minimum:"300" maximum:"86400" multipleOf:"300" default:"300"`
},
) (*One[contract.GPUHistory], error) {
	now := a.Clock.Now()
	if in.Since.After(now) {
		return nil, problem.Parameter("since", "must not be in the future")
	}
	d, err := readDevice(ctx, a, in.ID)
	if err != nil {
		return nil, err
	}
	since, ok := a.Ledger.Sight(auth.From(ctx).Scope()).DeviceSince(d)
	if !ok {
		return nil, ledger.ErrNotFound
	}
	since = latest(since, in.Since, now.Add(-historyKept))
	said, _ := a.Telemetry.Of(d.Node.ID)
	uuid := capacity.GPUOf(d.UUID)
	if g, ok := findSaid(said, d.Node, d.UUID, d.Index); ok {
		uuid = g.UUID
	}
	got := a.Telemetry.History(d.Node.ID, uuid, since, seconds(in.StepSeconds))
	return &One[contract.GPUHistory]{Body: contract.GPUHistory{UUID: d.UUID,
		Simulated: said.Look.Source == "simulated", Since: since.UTC(), StepSeconds: in.StepSeconds,
		Complete: got.Complete, Elsewhere: got.Elsewhere, Items: got.Steps}}, nil
}

// latest is the latest of some times.
func latest(first time.Time, others ...time.Time) time.Time {
	for _, t := range others {
		if t.After(first) {
			first = t
		}
	}
	return first
}
