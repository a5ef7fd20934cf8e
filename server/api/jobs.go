package api

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/internal/plaintext"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/operation"
)

// mostJobBody bounds a submission: its command, its environment and its input in base64.
const mostJobBody = 1 << 20

func jobEndpoints(a *API) []endpoint {
	return []endpoint{
		serveOnce(a, a.withImages(submitJobs), (*book[contract.JobCreate]).body, locateJob),
		serveDescribed(a, submitJobBatch.Operation, a.describeJobBatch, submitBatch),
		serve(a, operation.Operation{ID: "listJobs", Method: http.MethodGet, Path: "/jobs", Tag: "jobs",
			Policy: auth.Viewer, Summary: "List jobs, the newest first"}, listJobs),
		serve(a, operation.Operation{ID: "countJobs", Method: http.MethodGet, Path: "/job-counts", Tag: "jobs",
			Policy: auth.Viewer, Summary: "Count jobs by their state"}, countJobs),
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
		serveOnce(a, changeJob("shelveJob", "shelve", "End a job's attempt, and hold the job",
			(*verbs.Ledger).ShelveJob), (*act).target, nil),
		serveChange(a, patchJob, func(in *patchJobInput) (plannedJob, error) {
			version, err := in.parseIfMatch()
			return plannedJob{in.ID, version, in.Body}, err
		}, func(j contract.Job) int { return j.Version }),
		serveJobSet(a, "cancel", "Cancel all jobs of an array, or of one's own", (*verbs.Ledger).CancelJobs),
		serveJobSet(a, "requeue", "Requeue all jobs of an array, or of one's own", (*verbs.Ledger).RequeueJobs),
		serveJobSet(a, "hold", "Hold all jobs of an array, or of one's own", (*verbs.Ledger).HoldJobs),
		serveJobSet(a, "release", "Release all jobs of an array, or of one's own", (*verbs.Ledger).ReleaseJobs),
		serveJobSet(a, "shelve", "End what all jobs of an array, or of one's own, have running, and hold them",
			(*verbs.Ledger).ShelveJobs),
		serveJobSetEdit(a),
		serveDescribed(a, operation.Operation{ID: "getJobOutput", Method: http.MethodGet, Path: "/jobs/{id}/output",
			Tag: "jobs", Policy: auth.Member, Streams: true,
			Summary: "Read, and follow, what a job writes, as lines of JSON"}, a.describeOutput, getJobOutput),
		serve(a, operation.Operation{ID: "listQueue", Method: http.MethodGet, Path: "/queue", Tag: "jobs",
			Policy: auth.Viewer, Summary: "List the jobs that wait in a pool, as they would start now"}, listQueue),
	}
}

// submitted are jobs, with what a dry run foresees of them.
type submitted struct {
	jobs []job.Job
	why  map[string]ledger.QueuedJob
}

var submitJobs = operation.Change[contract.JobCreate, submitted, contract.JobsSubmitted]{
	Operation: operation.Operation{ID: "submitJobs", Method: http.MethodPost, Path: "/jobs", Tag: "jobs",
		Status: http.StatusCreated, Policy: auth.Member, MaxBody: mostJobBody,
		Summary: "Submit a job, or an array of jobs"},
	Check: func(_ context.Context, _ operation.Viewer, b *contract.JobCreate) error { return checkArray(b.Array) },
	Lock:  func(b contract.JobCreate) *ledger.LockHint { return poolLock(b.Pool) },
	Run: func(ctx context.Context, l *verbs.Ledger, actor ledger.Actor, b contract.JobCreate) (out submitted, err error) {
		if out.jobs, err = l.SubmitJobs(ctx, actor, decodeJob(b)); err == nil {
			out.why, err = l.ForeseeSubmitted(ctx, out.jobs)
		}
		return out, err
	},
	Encode: forAnybody(encodeSubmitted),
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
		Grace: seconds(b.GraceSeconds), Reservation: b.ReservationID, Workload: capacity.Workload(b.Workload),
		NotBefore: truncateTime(b.NotBefore), Retries: job.Retries{Lost: usualLosses},
		Command: job.Command{Arguments: b.Command, Directory: b.Directory, Environment: b.Environment, Input: b.Input,
			Slurm: b.Slurm, Image: b.Image, Mounts: decodeMounts(b.Mounts)},
		Where: job.Where{Constraints: b.Constraints, Prefers: b.Prefers, Tolerates: b.Tolerations,
			Excludes: b.ExcludedNodes, Near: b.Near, Apart: b.ApartFrom}}
	if j.Grace == 0 {
		j.Grace = usualGrace
	}
	if b.Retries != nil {
		j.Retries = job.Retries(*b.Retries)
	}
	if c := b.Checkpoint; c != nil {
		j.Checkpoint = job.Checkpoint{Signal: c.Signal, Before: seconds(c.BeforeSeconds), LeaderOnly: c.LeaderOnly}
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
	out := ledger.JobCommand{Job: j, Held: b.Hold, Preemptible: b.Preemptible, Needs: ledger.AllocateRequest{
		Pool: b.Pool, Model: b.Model, Needs: decodeNeeds(b.Needs), GPUs: b.GPUs, Layout: decodeLayout(b.Layout)}}
	if b.Array != nil {
		out.Indices, out.ArrayLimit = indicesOf(*b.Array), b.Array.Limit
	}
	return out
}

// locateJob is where to read a job that was submitted alone.
func locateJob(made contract.JobsSubmitted) (path string, version int) {
	if made.ArrayID != "" || len(made.Jobs) != 1 {
		return "", 0
	}
	return "/v1/jobs/" + made.Jobs[0].ID, made.Jobs[0].Version
}

func encodeSubmitted(all submitted) contract.JobsSubmitted {
	out := contract.JobsSubmitted{Jobs: make([]contract.Job, 0, len(all.jobs))}
	encode := encodeListed
	if len(all.jobs) == 1 {
		encode = encodeJob
	}
	for _, j := range all.jobs {
		out.ArrayID = j.Array.ID
		out.Jobs = append(out.Jobs, tellWhy(encode(j), all.why))
	}
	return out
}

// encodeListed leaves out what may be large, and is the same of many.
func encodeListed(j job.Job) contract.Job {
	out := encodeJob(j)
	out.Environment = nil
	out.Command, out.CommandCut = cutCommand(out.Command)
	return out
}

// listedCommand is how many bytes of a command are in lists.
const listedCommand = 256

// cutCommand is the beginning of a command, if it is long.
func cutCommand(command []string) (out []string, isCut bool) {
	left := listedCommand
	out = make([]string, 0, min(len(command), 8))
	for _, text := range command {
		if len(text) > left {
			return append(out, strings.ToValidUTF8(text[:left], "")+"…"), true
		}
		left -= len(text) + 1
		if out = append(out, text); left <= 0 {
			return out, len(out) < len(command)
		}
	}
	return out, false
}

func encodeJob(j job.Job) contract.Job {
	out := contract.Job{ID: j.ID, OrganizationID: j.OrganizationID, PoolID: j.PoolID, Name: j.Name,
		SubmittedBy: j.SubmittedBy, UserID: j.UserID, State: string(j.State()), Reason: j.Reason,
		Priority: string(j.Priority),
		Command:  append([]string{}, j.Command.Arguments...), Directory: j.Command.Directory,
		Environment: j.Command.Environment, Slurm: j.Command.Slurm, GPUs: j.Shape.GPUs(), Nodes: j.Shape.Nodes,
		GPUsPerNode: j.Shape.PerNode, MaxRuntimeSeconds: int64(j.MaxRuntime / time.Second),
		GraceSeconds: int64(j.Grace / time.Second),
		Retries:      contract.JobRetries(j.Retries), ArrayID: j.Array.ID, ArrayLimit: j.Array.Limit,
		NotBefore: j.NotBefore.UTC(), Attempt: j.Attempt,
		AllocationID: j.AllocationID, SubmittedAt: j.SubmittedAt.UTC(), ScheduledAt: j.ScheduledAt.UTC(),
		StartedAt: j.StartedAt.UTC(), EndedAt: j.EndedAt.UTC(), Signal: j.End.Signal,
		GPUSeconds: int64(j.GPUTime / time.Second), Cost: formatMoney(j.Cost), Version: j.Version,
		PeakMemoryBytes: j.End.PeakMemory, Image: j.Command.Image, Mounts: encodeMounts(j.Command.Mounts)}
	if j.IsEligible() {
		out.EligibleAt = j.WaitsSince().UTC()
	}
	out.Checkpoint = encodeCheckpoint(j.Checkpoint)
	for _, d := range j.Dependencies {
		out.Dependencies = append(out.Dependencies, contract.JobDependency{JobID: d.JobID,
			Condition: string(d.Condition)})
	}
	if j.Array.ID != "" {
		out.ArrayIndex = &j.ArrayIndex
	}
	if j.End.Ran {
		out.ExitCode = &j.End.ExitCode
	}
	out.ReservationID, out.Workload = j.Reservation, string(cmp.Or(j.Workload, capacity.Batch))
	out.Constraints, out.Prefers, out.Tolerations = j.Where.Constraints, j.Where.Prefers, j.Where.Tolerates
	out.Near, out.ApartFrom = j.Where.Near, j.Where.Apart
	out.ExcludedNodes, out.AvoidedNodes = j.Where.Excludes, j.Avoids
	out.Preemptible, out.Preemptions = j.Preemptible, j.Preemptions
	if e := j.Ending; e.Is() {
		out.Ending = &contract.JobEnding{Then: string(e.Then), AskedAt: e.Asked.UTC(),
			KillAt: e.KillAt().UTC(), By: e.By.UTC(), For: e.For, Hold: e.Hold}
	}
	if j.Over() || j.Reason != "" {
		out.Detail = j.End.Reason
	}
	return out
}

// hostsOf are the addresses of all nodes, by rank, as MASTER_ADDR has the first; nil: not all are known.
func hostsOf(nodes []contract.NodeAccess) []string {
	if len(nodes) == 1 {
		return []string{nodes[0].Environment["MASTER_ADDR"]}
	}
	all := make([]string, len(nodes))
	for i, n := range nodes {
		if all[i] = n.Address; n.Address == "" {
			return nil
		}
	}
	return all
}

// orderOf is what the daemon of a node needs to start an attempt there.
func orderOf(o ledger.JobOrder, n contract.NodeAccess, hosts []string) contract.JobOrder {
	out := contract.JobOrder{JobKey: contract.JobKey{JobID: o.Job.ID, Attempt: o.Job.Attempt}, Rank: o.Rank,
		AllocationID: o.Allocation.ID, GPUUUIDs: n.GPUUUIDs, GPUIndices: n.GPUIndices, Shares: n.Shares,
		HoldEnvironment: n.Environment, EndsHold: o.Job.Shape.Nodes == 1, Hosts: hosts,
		Command: o.Job.Command.Arguments, Directory: o.Job.Command.Directory, Environment: environmentOfJob(o.Job),
		Input: o.Job.Command.Input, Slurm: o.Job.Command.Slurm, MaxRuntimeSeconds: int64(o.Job.MaxRuntime / time.Second),
		GraceSeconds: int64(o.Job.Grace / time.Second), Image: o.Job.Command.Image,
		Mounts: encodeMounts(o.Job.Command.Mounts), Checkpoint: encodeCheckpoint(o.Job.Checkpoint)}
	return out
}

// encodeCheckpoint is nil for a job that is not told that its end is near.
func encodeCheckpoint(c job.Checkpoint) *contract.JobCheckpoint {
	if c.Signal == "" {
		return nil
	}
	return &contract.JobCheckpoint{Signal: c.Signal, BeforeSeconds: int64(c.Before / time.Second),
		LeaderOnly: c.LeaderOnly}
}

// reportOf is a daemon's word on an attempt as the ledger has it.
func reportOf(r contract.JobReport) ledger.JobReport {
	out := ledger.JobReport{JobID: r.JobID, Attempt: r.Attempt, Rank: r.Rank, Ended: r.State == contract.JobRankEnded}
	if !out.Ended {
		return out
	}
	out.EndedAgo = time.Duration(r.EndedSecondsAgo * float64(time.Second)).Truncate(time.Microsecond)
	e := job.End{ExitCode: r.ExitCode, Signal: r.Signal, Reason: plaintext.Escape(ledger.ClipText(r.Reason, 300)),
		Ran: true, PeakMemory: r.PeakMemoryBytes}
	switch {
	case r.Code == contract.JobTimeLimit:
		e.Code = job.TimeLimit
	case r.Code == contract.JobOutOfMemory:
		e.Code = job.OOM
	case r.Code == contract.JobNotStarted:
		e.Code, e.Ran = job.NotStarted, false
	case r.Code == contract.JobStopped:
		e.Code = job.Stopped
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
