package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"

	"github.com/forewarm/forewarm/contract"
)

// JobFilter narrows a list of jobs. Of the Filter, Organization, Pool, State, Name, All and
// PageSize count.
type JobFilter struct {
	Filter
	Array string // the id that all jobs of an array share; those that are over are listed, too
	Mine  bool   // only those that this key, or another of the same person, submitted
}

func (f JobFilter) query() url.Values {
	q := f.Filter.query()
	if f.Array != "" {
		q.Set("array", f.Array)
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

// Job reads a job.
func (c *Client) Job(ctx context.Context, id string) (contract.Job, error) {
	return callFor[contract.Job](ctx, c, call{method: http.MethodGet, path: []string{"jobs", id}})
}

// Jobs lists jobs, the newest first: those that are not over, unless the filter says otherwise.
func (c *Client) Jobs(ctx context.Context, f JobFilter) iter.Seq2[contract.Job, error] {
	return listPages[contract.Job](ctx, c, f.query(), "jobs")
}

// CancelJob ends a job, whether it waits or runs. What runs gets TERM, and KILL soon after; the answer
// may come before that.
func (c *Client) CancelJob(ctx context.Context, id string) (contract.Job, error) {
	return c.changeJob(ctx, id, "cancel")
}

// RequeueJob ends what a job has running, and has it wait for its next attempt.
func (c *Client) RequeueJob(ctx context.Context, id string) (contract.Job, error) {
	return c.changeJob(ctx, id, "requeue")
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

// ExplainJob tells why a job is as it is: why it waits, and what would let it start.
func (c *Client) ExplainJob(ctx context.Context, id string) (contract.Explanation, error) {
	return callFor[contract.Explanation](ctx, c, call{method: http.MethodGet, path: []string{"jobs", id, "explain"}})
}

// Queue lists the jobs that wait in the pool of the filter, in the order in which they would start
// now, each with its Position. Of the filter, Organization counts, too.
func (c *Client) Queue(ctx context.Context, f Filter) iter.Seq2[contract.Job, error] {
	return listItems[contract.Job](ctx, c, Filter{Organization: f.Organization, Pool: f.Pool}, "queue")
}

// IsJobOver reports whether a job is over, and will not run again.
func IsJobOver(state string) bool {
	switch state {
	case contract.JobCompleted, contract.JobFailed, contract.JobCancelled:
		return true
	}
	return false
}
