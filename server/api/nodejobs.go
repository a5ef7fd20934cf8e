package api

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"time"

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

// settleNode keeps what a heartbeat says of the work on its node, and answers what its daemon is to do.
func (a *API) settleNode(ctx context.Context, b contract.Heartbeat, answer *contract.HeartbeatAnswer) error {
	actor := auth.From(ctx)
	told, err := a.Ledger.SettleNode(ctx, actor, nodeReportOf(b))
	if err != nil {
		return err
	}
	answer.Ended = told.Ended
	for _, l := range told.Leases {
		answer.Leases = append(answer.Leases, contract.Lease{AllocationID: l.AllocationID,
			LeftSeconds: leftSeconds(l.Left)})
	}
	answer.UnlistedHolds = told.UnlistedHolds
	for _, u := range told.UnlistedJobs {
		answer.UnlistedJobs = append(answer.UnlistedJobs, contract.JobKey(u))
	}
	for _, f := range told.Forget {
		answer.ForgetJobs = append(answer.ForgetJobs, contract.JobKey(f))
	}
	for _, s := range told.Stop {
		answer.StopJobs = append(answer.StopJobs, stopOf(s))
	}
	for _, o := range told.Start {
		access, err := ledger.AccessTo(told.Place, ledger.SystemActor("node"), o.Allocation)
		if err != nil {
			return err
		}
		if access == nil { // its lease is over
			continue
		}
		encoded := encodeAccess(o.Allocation, *access)
		for _, n := range encoded.Nodes {
			if n.NodeID == actor.NodeID {
				order := orderOf(o, n, hostsOf(encoded.Nodes))
				order.LeaseSeconds = leftSeconds(o.Allocation.LeaseUntil.Sub(told.Place.At))
				answer.Jobs = append(answer.Jobs, order)
			}
		}
	}
	return nil
}

// leftSeconds rounds up: a daemon must not take a lease for over that is not.
func leftSeconds(left time.Duration) int64 { return int64((left + time.Second - 1) / time.Second) }

func nodeReportOf(b contract.Heartbeat) ledger.NodeReport {
	said := ledger.NodeReport{Isolation: capacity.Isolation(b.Look.Isolation), Holds: b.Holds,
		OverHolds: b.OverHolds}
	for _, c := range b.Cleaned {
		said.Cleaned = append(said.Cleaned, ledger.Cleaned{AllocationID: c.AllocationID, Problem: c.Problem, Proof: c.Proof})
	}
	for _, g := range b.GoneJobs {
		said.GoneJobs = append(said.GoneJobs, ledger.JobAttempt(g))
	}
	for _, r := range b.Jobs {
		said.Jobs = append(said.Jobs, reportOf(r))
	}
	return said
}

func stopOf(s ledger.JobStop) contract.JobStop {
	out := contract.JobStop{JobKey: contract.JobKey(s.JobAttempt), GraceSeconds: int64(s.Grace / time.Second)}
	if s.Lead > 0 {
		out.Signal, out.LeadSeconds, out.LeaderOnly = s.Signal, int64(s.Lead/time.Second), s.LeaderOnly
	}
	return out
}

// environmentOfJob are a job's variables, with those that tell it what it is.
func environmentOfJob(j job.Job) map[string]string {
	env := maps.Clone(j.Command.Environment)
	if env == nil {
		env = map[string]string{}
	}
	env["FOREWARM_JOB_NAME"] = j.Name
	if j.Array.ID != "" {
		env["FOREWARM_ARRAY_ID"], env["FOREWARM_ARRAY_INDEX"] = j.Array.ID, strconv.Itoa(j.ArrayIndex)
	}
	if j.Array.Jobs > 0 { // those of earlier versions do not say
		env["FOREWARM_ARRAY_COUNT"] = strconv.Itoa(j.Array.Jobs)
		env["FOREWARM_ARRAY_FIRST"], env["FOREWARM_ARRAY_LAST"] = strconv.Itoa(j.Array.First), strconv.Itoa(j.Array.Last)
	}
	return env
}
