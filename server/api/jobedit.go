package api

import (
	"context"
	"net/http"
	"time"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/operation"
)

type patchJobInput struct {
	ByID
	Match
	Body contract.JobPatch
}

// plannedJob is an edit of the version of a job that was read.
type plannedJob struct {
	id      string
	version int
	patch   contract.JobPatch
}

var patchJob = operation.Change[plannedJob, job.Job, contract.Job]{
	Operation: operation.Operation{ID: "patchJob", Method: http.MethodPatch, Path: "/jobs/{id}", Tag: "jobs",
		Policy: auth.Member, Summary: "Change what a job asks for; that it has waited counts as before, unless it is " +
			"put off. Of one that runs its name, its priority and whether it may leave for others"},
	Run: func(ctx context.Context, l *verbs.Ledger, actor ledger.Actor, b plannedJob) (job.Job, error) {
		return l.EditJob(ctx, actor, b.id, b.version, decodeJobPatch(b.patch))
	},
	Encode: forAnybody(encodeJob),
}

// serveJobSetEdit serves the edit of a set of jobs.
func serveJobSetEdit(a *API) endpoint {
	return serveSet(a, "edit", "Change what all jobs of an array, or of one's own, ask for, as far as their states let it",
		func(b *contract.JobSetPatch) *contract.JobSet { return &b.JobSet },
		func(l *verbs.Ledger, ctx context.Context, actor ledger.Actor, s ledger.JobSet, b contract.JobSetPatch) (
			ledger.JobsChanged, error) {
			return l.EditJobs(ctx, actor, s, decodeJobPatch(b.Patch))
		})
}

func decodeJobPatch(b contract.JobPatch) ledger.JobEdit {
	e := ledger.JobEdit{Name: b.Name, Pool: b.Pool, Preemptible: b.Preemptible}
	if b.Priority != nil {
		e.Priority = new(job.Priority(*b.Priority))
	}
	if b.MaxRuntimeSeconds != nil {
		e.MaxRuntime = new(time.Duration(*b.MaxRuntimeSeconds) * time.Second)
	}
	if b.NotBefore != nil {
		e.NotBefore = new(truncateTime(*b.NotBefore))
	}
	return e
}
