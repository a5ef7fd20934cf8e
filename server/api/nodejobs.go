package api

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strconv"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/operation"
	"github.com/forewarm/forewarm/server/problem"
)

// mostOutput bounds a part of a job's output, in base64.
const mostOutput = 1 << 20

func nodeJobEndpoints(a *API) []endpoint {
	return []endpoint{
		serve(a, operation.Operation{ID: "putJobOutput", Method: http.MethodPut,
			Path: "/nodes/{id}/jobs/{job}/output", Tag: "capacity", Policy: auth.Nodes, MaxBody: mostOutput,
			Summary: "Store what a job wrote on a node, as its daemon"}, putJobOutput),
	}
}

func putJobOutput(ctx context.Context, a *API, in *struct {
	ByID
	Job  string `path:"job" maxLength:"64"`
	Body contract.JobOutputPart
},
) (*One[contract.JobOutputStored], error) {
	b := in.Body
	part := ledger.JobOutput{JobID: in.Job, Attempt: b.Attempt, Rank: b.Rank, Start: b.Offset, End: b.Offset}
	for i, p := range b.Pieces {
		if len(p.Data) == 0 {
			return nil, problem.Invalid(fmt.Sprintf("pieces[%d].data", i), "must not be empty", "")
		}
		part.End += int64(len(p.Data))
		part.Pieces = append(part.Pieces, ledger.JobPiece{Stream: p.Stream, At: p.At.UTC(), Data: p.Data})
	}
	next, err := a.Ledger.StoreOutput(ctx, auth.From(ctx), part)
	return &One[contract.JobOutputStored]{Body: contract.JobOutputStored{NextOffset: next}}, err
}

// tellJobs keeps what a heartbeat says of jobs, and answers what its daemon is to start and may
// forget. One that was not asked to report, and knows of no job, is told nothing new: whoever has
// something for it asks.
func (a *API) tellJobs(ctx context.Context, b contract.Heartbeat, answer *contract.HeartbeatAnswer) error {
	actor := auth.From(ctx)
	known := make([]ledger.JobAttempt, 0, len(b.Jobs))
	if len(b.Jobs) > 0 {
		reports := make([]ledger.JobReport, 0, len(b.Jobs))
		for _, r := range b.Jobs {
			known = append(known, ledger.JobAttempt{JobID: r.JobID, Attempt: r.Attempt})
			reports = append(reports, reportOf(r))
		}
		forget, err := a.Ledger.RecordJobs(ctx, actor, reports)
		if err != nil {
			return err
		}
		for _, f := range forget {
			answer.ForgetJobs = append(answer.ForgetJobs, contract.JobKey(f))
		}
	}
	orders, err := a.Ledger.TakeOrders(ctx, actor, capacity.Isolation(b.Look.Isolation), known)
	if err != nil || len(orders) == 0 && len(answer.ForgetJobs) == 0 {
		return err
	}
	return a.readSnapshot(ctx, func(r ledger.Reader) (err error) {
		if len(answer.ForgetJobs) > 0 { // their allocations have ended just now, and others wait for their GPUs
			if answer.Ended, err = ledger.EndedHolds(r, actor.NodeID, b.Holds); err != nil {
				return err
			}
		}
		for _, o := range orders {
			access, err := ledger.AccessTo(r, ledger.SystemActor("node"), o.Allocation)
			if err != nil {
				return err
			}
			if access == nil { // it has ended meanwhile
				continue
			}
			encoded := encodeAccess(o.Allocation, *access)
			for _, n := range encoded.Nodes {
				if n.NodeID == actor.NodeID {
					answer.Jobs = append(answer.Jobs, orderOf(o, n))
				}
			}
		}
		return nil
	})
}

// environmentOfJob are a job's variables, with those that tell it what it is.
func environmentOfJob(j job.Job) map[string]string {
	env := maps.Clone(j.Command.Environment)
	if env == nil {
		env = map[string]string{}
	}
	env["FOREWARM_JOB_NAME"] = j.Name
	if j.ArrayID != "" {
		env["FOREWARM_ARRAY_ID"], env["FOREWARM_ARRAY_INDEX"] = j.ArrayID, strconv.Itoa(j.ArrayIndex)
	}
	return env
}
