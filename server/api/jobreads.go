package api

import (
	"context"
	"time"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/problem"
)

// JobsOf says which jobs are wanted.
type JobsOf struct {
	OfOrganization
	State []string  `query:"state" enum:"pending,held,scheduled,running,preempted,completed,failed,cancelled"`
	Pool  string    `query:"pool" maxLength:"64" doc:"Id or name."`
	Name  string    `query:"name" maxLength:"64"`
	Array string    `query:"array" maxLength:"64" doc:"The array_id of its jobs."`
	Index int       `query:"index" default:"-1" minimum:"-1" maximum:"1000000" doc:"In its array; -1: any, or none."`
	User  string    `query:"user" maxLength:"254" doc:"Id or e-mail address of who submitted them."`
	Mine  bool      `query:"mine" doc:"Only those that were submitted with this key, or by its person."`
	Since time.Time `query:"since"`
	Until time.Time `query:"until"`
	All   bool      `query:"all"`
}

// filter returns whose jobs are wanted, and which.
func (in JobsOf) filter(ctx context.Context, a *API, r ledger.Reader) (s ledger.Scope, f ledger.JobFilter, err error) {
	if s, err = a.requestedScope(ctx, r, in.OfOrganization); err != nil {
		return s, f, err
	}
	if !in.Since.IsZero() && !in.Until.IsZero() && !in.Since.Before(in.Until) {
		return s, f, problem.Parameter("until", "must be after since")
	}
	f = ledger.JobFilter{State: in.State, ArrayID: in.Array, Name: in.Name, Since: in.Since, Until: in.Until,
		Live: !in.All && len(in.State) == 0 && in.Array == "" && in.Since.IsZero() && in.Until.IsZero()}
	if in.Index >= 0 {
		f.ArrayIndex = &in.Index
	}
	if f.PoolID, err = a.resolvePool(ctx, r, in.Pool); err != nil {
		return s, f, err
	}
	if f.UserID, err = a.resolveParameter(ctx, r, s, ledger.NounUser, "user", in.User); err != nil {
		return s, f, err
	}
	if actor := auth.From(ctx); in.Mine && actor.UserID != "" {
		f.UserID = actor.UserID
	} else if in.Mine {
		f.SubmittedBy = actor.KeyID
	}
	return s, f, nil
}

func listJobs(ctx context.Context, a *API, in *struct {
	Page
	JobsOf
},
) (out *ListOut[contract.Job], err error) {
	err = a.readSnapshot(ctx, func(r ledger.Reader) error {
		s, f, err := in.filter(ctx, a, r)
		if err != nil {
			return err
		}
		why := map[string]ledger.QueuedJob{}
		out, err = readPage(in.Page, "job", func(p ledger.Page) (all []job.Job, err error) {
			if all, err = r.Jobs(s, f, p); err == nil {
				why, err = a.Ledger.WhyWaiting(r, all)
			}
			return all, err
		}, func(j job.Job) string { return j.ID }, func(j job.Job) contract.Job { return tellWhy(encodeListed(j), why) })
		return err
	})
	return out, err
}

// tellWhy is a job with why it waits, if it does.
func tellWhy(out contract.Job, why map[string]ledger.QueuedJob) contract.Job {
	if q, waits := why[out.ID]; waits {
		out.Position, out.Reason, out.Detail = q.Position, q.Code, q.WaitText()
		out.PredictedStart, out.Unpredicted = encodeJobForecast(q.Start), q.Unpredicted
	}
	return out
}

func encodeJobForecast(p *ledger.PredictedTime) *contract.JobForecast {
	if p == nil {
		return nil
	}
	return &contract.JobForecast{Earliest: wholeSecond(p.P10), Likely: wholeSecond(p.P50), Latest: wholeSecond(p.P90),
		Basis: p.Basis}
}

// wholeSecond is about when something is predicted that nobody knows to the second.
func wholeSecond(t time.Time) time.Time { return t.UTC().Round(time.Second) }

func countJobs(ctx context.Context, a *API, in *struct{ JobsOf }) (*One[contract.JobCounts], error) {
	var out contract.JobCounts
	err := a.readSnapshot(ctx, func(r ledger.Reader) error {
		s, f, err := in.filter(ctx, a, r)
		if err != nil {
			return err
		}
		n, err := r.CountJobs(s, f)
		out = contract.JobCounts{Pending: n[job.Pending], Held: n[job.Held], Scheduled: n[job.Scheduled],
			Running: n[job.Running], Preempted: n[job.Preempted], Completed: n[job.Completed], Failed: n[job.Failed],
			Cancelled: n[job.Cancelled]}
		return err
	})
	return &One[contract.JobCounts]{Body: out}, err
}

// getJob tells the place in the queue, and what is predicted, only to those who ask: it costs a look at all of the
// queue, or at what its organization ran.
func getJob(ctx context.Context, a *API, in *struct {
	ByID
	Position bool `query:"position" doc:"Tell its place in the queue and predictions, too, which takes longer."`
},
) (*One[contract.Job], error) {
	var out contract.Job
	err := a.readSnapshot(ctx, func(r ledger.Reader) error {
		j, err := r.Job(auth.From(ctx).Scope(), in.ID)
		if err != nil {
			return err
		}
		var why map[string]ledger.QueuedJob
		if in.Position && j.State() == job.Pending {
			why, err = a.queuedByID(r, j.PoolID)
		} else {
			why, err = a.Ledger.WhyWaiting(r, []job.Job{j})
		}
		out = tellWhy(encodeJob(j), why)
		if err == nil && in.Position && j.State() == job.Pending {
			one := []contract.Job{out}
			err = tellNoWorker(a, r, j.PoolID, one)
			out = one[0]
		}
		if err == nil && in.Position {
			err = a.tellEnd(r, j, &out)
		}
		if err == nil && out.Ending != nil {
			out.Ending.UnheardBy, err = a.Ledger.UnheardBy(r, j)
		}
		return err
	})
	return &One[contract.Job]{ETag: formatETag(out.Version), Body: out}, err
}

// tellEnd adds when a job that runs is predicted to end.
func (a *API) tellEnd(r ledger.Reader, j job.Job, out *contract.Job) error {
	end, why, err := a.Ledger.PredictEnd(r, j)
	if out.PredictedEnd = encodeJobForecast(end); why != "" {
		out.Unpredicted = why
	}
	return err
}

func (a *API) queuedByID(r ledger.Reader, poolID string) (map[string]ledger.QueuedJob, error) {
	queue, err := a.Ledger.QueueOf(r, poolID)
	all := make(map[string]ledger.QueuedJob, len(queue))
	for _, q := range queue {
		all[q.ID] = q
	}
	return all, err
}
