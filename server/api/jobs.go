package api

import (
	"context"
	"net/http"
	"time"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/internal/plaintext"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/operation"
	"github.com/forewarm/forewarm/server/problem"
)

// mostJobBody bounds a submission: its command, its environment and its input in base64.
const mostJobBody = 1 << 20

func jobEndpoints(a *API) []endpoint {
	return []endpoint{
		serveOnce(a, submitJobs, (*book[contract.JobCreate]).body, nil),
		serve(a, operation.Operation{ID: "listJobs", Method: http.MethodGet, Path: "/jobs", Tag: "jobs",
			Policy: auth.Viewer, Summary: "List jobs, the newest first"}, listJobs),
		serve(a, operation.Operation{ID: "getJob", Method: http.MethodGet, Path: "/jobs/{id}", Tag: "jobs",
			Policy: auth.Viewer, Summary: "Read a job"}, getJob),
		serveOnce(a, changeJob("cancelJob", "cancel", "Cancel a job: it starts no more, or is ended",
			(*verbs.Ledger).CancelJob), (*act).target, nil),
		serveOnce(a, changeJob("requeueJob", "requeue", "End a job's attempt, and have it wait for GPUs again",
			(*verbs.Ledger).RequeueJob), (*act).target, nil),
		serveOnce(a, changeJob("holdJob", "hold", "Keep a job that waits from starting",
			(*verbs.Ledger).HoldJob), (*act).target, nil),
		serveOnce(a, changeJob("releaseJob", "release", "Let a job start that is held",
			(*verbs.Ledger).ReleaseJob), (*act).target, nil),
		serveDescribed(a, operation.Operation{ID: "getJobOutput", Method: http.MethodGet, Path: "/jobs/{id}/output",
			Tag: "jobs", Policy: auth.Member, Streams: true,
			Summary: "Read, and follow, what a job writes, as lines of JSON"}, a.describeOutput, getJobOutput),
		serve(a, operation.Operation{ID: "listQueue", Method: http.MethodGet, Path: "/queue", Tag: "jobs",
			Policy: auth.Viewer, Summary: "List the jobs that wait in a pool, as they would start now"}, listQueue),
	}
}

var submitJobs = operation.Change[contract.JobCreate, []job.Job, contract.JobsSubmitted]{
	Operation: operation.Operation{ID: "submitJobs", Method: http.MethodPost, Path: "/jobs", Tag: "jobs",
		Status: http.StatusCreated, Policy: auth.Member, MaxBody: mostJobBody,
		Summary: "Submit a job, or an array of jobs"},
	Check: func(_ context.Context, _ operation.Viewer, b *contract.JobCreate) error { return checkArray(b.Array) },
	Lock:  func(b contract.JobCreate) *ledger.LockHint { return poolLock(b.Pool) },
	Run: func(ctx context.Context, l *verbs.Ledger, actor ledger.Actor, b contract.JobCreate) ([]job.Job, error) {
		return l.SubmitJobs(ctx, actor, decodeJob(b))
	},
	Encode: forAnybody(encodeSubmitted),
}

func checkArray(a *contract.JobArray) error {
	if a != nil && a.Last < a.First {
		return problem.Invalid("array.last", "must not be below first", "")
	}
	return nil
}

// changeJob is a change of one job that takes no more than its id.
func changeJob(id, name, summary string, verb func(*verbs.Ledger, context.Context, ledger.Actor, string) (job.Job,
	error)) operation.Change[ByID, job.Job, contract.Job] {
	return operation.Change[ByID, job.Job, contract.Job]{
		Operation: operation.Operation{ID: id, Method: http.MethodPost, Path: "/jobs/{id}/" + name, Tag: "jobs",
			Policy: auth.Member, Summary: summary},
		Run: func(ctx context.Context, l *verbs.Ledger, actor ledger.Actor, b ByID) (job.Job, error) {
			return verb(l, ctx, actor, b.ID)
		},
		Encode: forAnybody(encodeJob),
	}
}

// The usual bounds of a job that names none.
const (
	usualGrace  = 30 * time.Second
	usualNotice = time.Minute
	usualLosses = 3
)

func decodeJob(b contract.JobCreate) ledger.JobCommand {
	j := job.Job{Name: b.Name, Priority: job.Priority(b.Priority), MaxRuntime: seconds(b.MaxRuntimeSeconds),
		Grace: seconds(b.GraceSeconds), NotBefore: truncateTime(b.NotBefore), Retries: job.Retries{Lost: usualLosses},
		Command: job.Command{Arguments: b.Command, Directory: b.Directory, Environment: b.Environment, Input: b.Input}}
	if j.Grace == 0 {
		j.Grace = usualGrace
	}
	if j.Priority == "" {
		j.Priority = job.Normal
	}
	if b.Retries != nil {
		j.Retries = job.Retries(*b.Retries)
	}
	if c := b.Checkpoint; c != nil {
		j.Checkpoint = job.Checkpoint{Signal: c.Signal, Before: seconds(c.BeforeSeconds)}
		if j.Checkpoint.Before == 0 {
			j.Checkpoint.Before = usualNotice
		}
	}
	for _, d := range b.Dependencies {
		condition := job.Condition(d.Condition)
		if condition == "" {
			condition = job.AfterOK
		}
		j.Dependencies = append(j.Dependencies, job.Depends{JobID: d.JobID, Condition: condition})
	}
	out := ledger.JobCommand{Job: j, Held: b.Hold, Needs: ledger.AllocateRequest{Pool: b.Pool, Model: b.Model,
		Needs: decodeNeeds(b.Needs), GPUs: b.GPUs, Layout: decodeLayout(b.Layout)}}
	if b.Array != nil {
		step := max(b.Array.Step, 1)
		for i := b.Array.First; i <= b.Array.Last && len(out.Indices) <= ledger.MostArray; i += step {
			out.Indices = append(out.Indices, i)
		}
	}
	return out
}

func encodeSubmitted(all []job.Job) contract.JobsSubmitted {
	out := contract.JobsSubmitted{Jobs: make([]contract.Job, 0, len(all))}
	for _, j := range all {
		out.ArrayID = j.ArrayID
		if len(all) == 1 {
			out.Jobs = append(out.Jobs, encodeJob(j))
		} else {
			out.Jobs = append(out.Jobs, encodeListed(j))
		}
	}
	return out
}

// encodeListed leaves out what may be large, and is the same of many.
func encodeListed(j job.Job) contract.Job {
	out := encodeJob(j)
	out.Environment = nil
	return out
}

func encodeJob(j job.Job) contract.Job {
	out := contract.Job{ID: j.ID, OrganizationID: j.OrganizationID, PoolID: j.PoolID, Name: j.Name,
		SubmittedBy: j.SubmittedBy, State: string(j.State()), Reason: j.Reason, Priority: string(j.Priority),
		Command: append([]string{}, j.Command.Arguments...), Directory: j.Command.Directory,
		Environment: j.Command.Environment, GPUs: j.Shape.GPUs(), Nodes: j.Shape.Nodes, GPUsPerNode: j.Shape.PerNode,
		MaxRuntimeSeconds: int64(j.MaxRuntime / time.Second), GraceSeconds: int64(j.Grace / time.Second),
		Retries: contract.JobRetries(j.Retries), ArrayID: j.ArrayID, NotBefore: j.NotBefore.UTC(), Attempt: j.Attempt,
		AllocationID: j.AllocationID, SubmittedAt: j.SubmittedAt.UTC(), ScheduledAt: j.ScheduledAt.UTC(),
		StartedAt: j.StartedAt.UTC(), EndedAt: j.EndedAt.UTC(), Signal: j.End.Signal,
		GPUSeconds: int64(j.GPUTime / time.Second), Cost: formatMoney(j.Cost), Version: j.Version}
	if j.Checkpoint.Signal != "" {
		out.Checkpoint = &contract.JobCheckpoint{Signal: j.Checkpoint.Signal,
			BeforeSeconds: int64(j.Checkpoint.Before / time.Second)}
	}
	for _, d := range j.Dependencies {
		out.Dependencies = append(out.Dependencies, contract.JobDependency{JobID: d.JobID,
			Condition: string(d.Condition)})
	}
	if j.ArrayID != "" {
		out.ArrayIndex = &j.ArrayIndex
	}
	if j.End.Ran {
		out.ExitCode = &j.End.ExitCode
	}
	if j.Over() || j.Reason != "" {
		out.Detail = j.End.Reason
	}
	return out
}

func listJobs(ctx context.Context, a *API, in *struct {
	Page
	OfOrganization
	State []string `query:"state" enum:"pending,held,scheduled,running,preempted,completed,failed,cancelled"`
	Pool  string   `query:"pool" maxLength:"64" doc:"Id or name."`
	Name  string   `query:"name" maxLength:"64"`
	Array string   `query:"array" maxLength:"64" doc:"The array_id of its jobs."`
	Mine  bool     `query:"mine" doc:"Only those that were submitted with this key, or by its person."`
	All   bool     `query:"all"`
},
) (out *ListOut[contract.Job], err error) {
	err = a.readSnapshot(ctx, func(r ledger.Reader) error {
		s, err := a.requestedScope(ctx, r, in.OfOrganization)
		if err != nil {
			return err
		}
		f := ledger.JobFilter{State: in.State, ArrayID: in.Array, Name: in.Name,
			Live: !in.All && len(in.State) == 0 && in.Array == ""}
		if f.PoolID, err = a.resolvePool(ctx, r, in.Pool); err != nil {
			return err
		}
		if actor := auth.From(ctx); in.Mine && actor.UserID != "" {
			f.UserID = actor.UserID
		} else if in.Mine {
			f.SubmittedBy = actor.KeyID
		}
		out, err = readPage(in.Page, "job", func(p ledger.Page) ([]job.Job, error) { return r.Jobs(s, f, p) },
			func(j job.Job) string { return j.ID }, encodeListed)
		return err
	})
	return out, err
}

func getJob(ctx context.Context, a *API, in *struct{ ByID }) (*One[contract.Job], error) {
	var out contract.Job
	err := a.readSnapshot(ctx, func(r ledger.Reader) error {
		j, err := r.Job(auth.From(ctx).Scope(), in.ID)
		if err != nil {
			return err
		}
		out = encodeJob(j)
		if j.State() != job.Pending {
			return nil
		}
		queue, err := verbs.QueueOf(r, j.PoolID)
		for _, q := range queue {
			if q.ID == j.ID {
				out.Position, out.Reason, out.Detail = q.Position, q.Code, q.Detail
			}
		}
		return err
	})
	return &One[contract.Job]{ETag: formatETag(out.Version), Body: out}, err
}

// listQueue shows a tenant its own jobs alone, with their places among all.
func listQueue(ctx context.Context, a *API, in *struct {
	OfOrganization
	Pool string `query:"pool" maxLength:"64" required:"true" doc:"Id or name."`
},
) (out *ListOut[contract.Job], err error) {
	out = &ListOut[contract.Job]{Body: contract.List[contract.Job]{Items: []contract.Job{}}}
	err = a.readSnapshot(ctx, func(r ledger.Reader) error {
		s, err := a.requestedScope(ctx, r, in.OfOrganization)
		if err != nil {
			return err
		}
		pool, err := a.resolvePool(ctx, r, in.Pool)
		if err != nil {
			return err
		}
		queue, err := verbs.QueueOf(r, pool)
		for _, q := range queue {
			if s.All || q.OrganizationID == s.OrganizationID {
				j := encodeListed(q.Job)
				j.Position, j.Reason, j.Detail = q.Position, q.Code, q.Detail
				out.Body.Items = append(out.Body.Items, j)
			}
		}
		return err
	})
	return out, err
}

// orderOf is what a node's daemon needs to start an attempt.
func orderOf(o ledger.JobOrder, n contract.NodeAccess) contract.JobOrder {
	out := contract.JobOrder{JobKey: contract.JobKey{JobID: o.Job.ID, Attempt: o.Job.Attempt}, Rank: o.Rank,
		AllocationID: o.Allocation.ID, GPUUUIDs: n.GPUUUIDs, GPUIndices: n.GPUIndices, HoldEnvironment: n.Environment,
		Command: o.Job.Command.Arguments, Directory: o.Job.Command.Directory, Environment: environmentOfJob(o.Job),
		Input: o.Job.Command.Input, MaxRuntimeSeconds: int64(o.Job.MaxRuntime / time.Second),
		GraceSeconds: int64(o.Job.Grace / time.Second)}
	if c := o.Job.Checkpoint; c.Signal != "" {
		out.Checkpoint = &contract.JobCheckpoint{Signal: c.Signal, BeforeSeconds: int64(c.Before / time.Second)}
	}
	return out
}

// reportOf is a daemon's word on an attempt as the ledger has it.
func reportOf(r contract.JobReport) ledger.JobReport {
	out := ledger.JobReport{JobID: r.JobID, Attempt: r.Attempt, Rank: r.Rank, Ended: r.State == contract.JobRankEnded}
	if !out.Ended {
		return out
	}
	e := job.End{ExitCode: r.ExitCode, Signal: r.Signal, Reason: plaintext.Escape(ledger.ClipText(r.Reason, 300)),
		Ran: true}
	switch {
	case r.Code == contract.JobTimeLimit:
		e.Code = job.TimeLimit
	case r.Code == contract.JobNotStarted:
		e.Code, e.Ran = job.NotStarted, false
	case r.Code != "":
		e.Code, e.Ran = job.Lost, false
	case r.Signal != "":
		e.Code = job.Signalled
	case r.ExitCode != 0:
		e.Code = job.Exit
	}
	out.End = e
	return out
}
