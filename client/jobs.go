package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"github.com/forewarm/forewarm/contract"
)

// JobFilter narrows a list of jobs. Of the Filter, Organization, Pool, State, Name, All and
// PageSize count.
type JobFilter struct {
	Filter
	Array string // the id that all jobs of an array share; those that are over are listed, too
	Index *int   // in its array; nil: of any, and of none
	Mine  bool   // only those that this key, or another of the same person, submitted
}

func (f JobFilter) query() url.Values {
	q := f.Filter.query()
	if f.Array != "" {
		q.Set("array", f.Array)
	}
	if f.Index != nil {
		q.Set("index", strconv.Itoa(*f.Index))
	}
	if f.Mine {
		q.Set("mine", "true")
	}
	return q
}

// SubmitJob submits a job, or all jobs of an array. They wait until there are GPUs for them; a job
// that was submitted goes on whatever becomes of this program. Of the options, DryRun counts.
func (c *Client) SubmitJob(ctx context.Context, in contract.JobCreate, o Options) (contract.JobsSubmitted, error) {
	return callFor[contract.JobsSubmitted](ctx, c, call{method: http.MethodPost, path: []string{"jobs"}, body: in,
		query: o.query()})
}

// SubmitJobs submits up to contract.MaxBatch jobs in one request, in their order; arrays count for each of their jobs,
// and all together make as many at most. One that is refused does not undo the others: the answer has a result for
// each. An error is of the whole request, of which nothing was submitted, or it is not known. Of the options, DryRun
// counts.
func (c *Client) SubmitJobs(ctx context.Context, in []contract.JobCreate, o Options) (contract.JobBatchResults, error) {
	return callFor[contract.JobBatchResults](ctx, c, call{method: http.MethodPost, path: []string{"jobs", "batch"},
		body: contract.JobBatch{Items: in}, query: o.query()})
}

// Job reads a job.
func (c *Client) Job(ctx context.Context, id string) (contract.Job, error) {
	return callFor[contract.Job](ctx, c, call{method: http.MethodGet, path: []string{"jobs", id}})
}

// JobInQueue reads a job with its Position among those that wait, which takes longer than Job where many do.
func (c *Client) JobInQueue(ctx context.Context, id string) (contract.Job, error) {
	return callFor[contract.Job](ctx, c, call{method: http.MethodGet, path: []string{"jobs", id},
		query: url.Values{"position": {"true"}}})
}

// CountJobs counts jobs by their state: those that are not over, unless the filter says otherwise.
func (c *Client) CountJobs(ctx context.Context, f JobFilter) (contract.JobCounts, error) {
	return callFor[contract.JobCounts](ctx, c, call{method: http.MethodGet, path: []string{"job-counts"},
		query: f.query()})
}

// Jobs lists jobs, the newest first: those that are not over, unless the filter says otherwise.
func (c *Client) Jobs(ctx context.Context, f JobFilter) iter.Seq2[contract.Job, error] {
	return listPages[contract.Job](ctx, c, f.query(), "jobs")
}

// CancelJob ends a job, whether it waits or runs. What runs gets TERM, and KILL when its grace is over:
// the answer comes before that, with Ending, and the job is cancelled after it.
func (c *Client) CancelJob(ctx context.Context, id string) (contract.Job, error) {
	return c.changeJob(ctx, id, "cancel")
}

// RequeueJob ends what a job has running, and has it wait for its next attempt.
func (c *Client) RequeueJob(ctx context.Context, id string) (contract.Job, error) {
	return c.changeJob(ctx, id, "requeue")
}

// ShelveJob ends what a job has running, and holds it then, until ReleaseJob.
func (c *Client) ShelveJob(ctx context.Context, id string) (contract.Job, error) {
	return c.changeJob(ctx, id, "shelve")
}

// HoldJob keeps a job that waits from starting, until ReleaseJob.
func (c *Client) HoldJob(ctx context.Context, id string) (contract.Job, error) {
	return c.changeJob(ctx, id, "hold")
}

// ReleaseJob lets a job that is held wait for its GPUs.
func (c *Client) ReleaseJob(ctx context.Context, id string) (contract.Job, error) {
	return c.changeJob(ctx, id, "release")
}

func (c *Client) changeJob(ctx context.Context, id, action string) (contract.Job, error) {
	return callFor[contract.Job](ctx, c, call{method: http.MethodPost, path: []string{"jobs", id, action}})
}

// CancelJobs is CancelJob of each job of a set: those of an array, or those that this key, or another of the same
// person, submitted. Where its answer has a NextCursor, more are left: send the set again with that as its Cursor.
// So it is with its siblings.
func (c *Client) CancelJobs(ctx context.Context, s contract.JobSet) (contract.JobsChanged, error) {
	return c.changeJobs(ctx, s, "cancel")
}

// RequeueJobs is RequeueJob of each job of a set that has GPUs.
func (c *Client) RequeueJobs(ctx context.Context, s contract.JobSet) (contract.JobsChanged, error) {
	return c.changeJobs(ctx, s, "requeue")
}

// ShelveJobs is ShelveJob of each job of a set that has GPUs.
func (c *Client) ShelveJobs(ctx context.Context, s contract.JobSet) (contract.JobsChanged, error) {
	return c.changeJobs(ctx, s, "shelve")
}

// HoldJobs is HoldJob of each job of a set that waits.
func (c *Client) HoldJobs(ctx context.Context, s contract.JobSet) (contract.JobsChanged, error) {
	return c.changeJobs(ctx, s, "hold")
}

// ReleaseJobs is ReleaseJob of each job of a set that is held.
func (c *Client) ReleaseJobs(ctx context.Context, s contract.JobSet) (contract.JobsChanged, error) {
	return c.changeJobs(ctx, s, "release")
}

// PatchJob changes what a job asks for, if it still has the version: all of it while it waits.
func (c *Client) PatchJob(ctx context.Context, id string, version int, in contract.JobPatch) (contract.Job, error) {
	return callFor[contract.Job](ctx, c, call{method: http.MethodPatch, path: []string{"jobs", id}, body: in,
		header: ifMatch(version)})
}

// PatchJobs changes what each job of a set asks for, as far as its state lets it.
func (c *Client) PatchJobs(ctx context.Context, s contract.JobSet, in contract.JobPatch) (contract.JobsChanged, error) {
	return callFor[contract.JobsChanged](ctx, c, call{method: http.MethodPost, path: []string{"jobs", "edit"},
		body: contract.JobSetPatch{JobSet: s, Patch: in}})
}

func (c *Client) changeJobs(ctx context.Context, s contract.JobSet, action string) (contract.JobsChanged, error) {
	return callFor[contract.JobsChanged](ctx, c, call{method: http.MethodPost, path: []string{"jobs", action}, body: s})
}

// ExplainJob tells why a job is as it is: why it waits, and what would let it start.
func (c *Client) ExplainJob(ctx context.Context, id string) (contract.Explanation, error) {
	return callFor[contract.Explanation](ctx, c, call{method: http.MethodGet, path: []string{"jobs", id, "explain"}})
}

// Queue lists the jobs that wait in the pool of the filter, in the order in which they would start
// now, each with its Position. Of the filter, Organization counts, too.
func (c *Client) Queue(ctx context.Context, f Filter) iter.Seq2[contract.Job, error] {
	query := Filter{Organization: f.Organization, Pool: f.Pool}.query()
	query.Set("limit", strconv.Itoa(queuePage))
	return listPages[contract.Job](ctx, c, query, "queue")
}

// queuePage is how many jobs of a queue are asked for at once: each page costs a look at all of it.
const queuePage = 1000

// IsJobOver reports whether a job is over, and will not run again.
func IsJobOver(state string) bool {
	switch state {
	case contract.JobCompleted, contract.JobFailed, contract.JobCancelled:
		return true
	}
	return false
}
