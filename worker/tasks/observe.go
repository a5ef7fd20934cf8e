package tasks

import (
	"context"
	"fmt"
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/provisioners"
)

// observeCluster keeps the nodes warm that are to be, and reports what the cluster's own
// scheduler did since the last look. A node that could not be kept is reported as this
// task's failure, after everything else was done: one that is lost to us must not hide
// who uses the others.
func (w Work) observeCluster(ctx context.Context, c Claim) error {
	watch, err := w.Ledger.Watch(ctx, c.Task.Subject)
	if err != nil {
		return fmt.Errorf("reading what to observe: %w", err)
	}
	p, err := w.findProvisioner(c.Task.Subject)
	if err != nil {
		return err
	}
	observer, able := p.(provisioners.Observer)
	if !able || !watch.Wanted {
		return w.Ledger.RetryTask(ctx, c.Guard, w.Ledger.SweepEvery(), "")
	}
	failure := ""
	if err := observer.Keep(ctx, watch.Warm); err != nil {
		w.Logger.WarnContext(ctx, "a node could not be kept warm; it is tried again", "error", err)
		failure = summarizeError(err)
	}
	seen, err := w.lookAt(ctx, observer, provisioners.Mark(watch.Mark))
	if err != nil {
		return fmt.Errorf("observing %s: %w", c.Task.Subject, err)
	}
	if !seen.Complete {
		w.Logger.WarnContext(ctx, "an observation is not complete; work may have begun or ended unseen")
	}
	changed, err := w.Ledger.ReportObserved(ctx, c.Guard, newObservation(c.Task.Subject, seen), failure)
	if err != nil {
		return fmt.Errorf("reporting what was observed: %w", err)
	}
	w.Metrics.Observed(c.Task.Subject, changed.Started, changed.Warm, seen.Complete)
	return nil
}

// lookAt observes a cluster since the mark. A mark that is none of this cluster's, as it
// is or was set up, begins anew: what was between is not known.
func (w Work) lookAt(ctx context.Context, o provisioners.Observer, since provisioners.Mark) (
	provisioners.Observation, error) {
	seen, err := o.Observe(ctx, since)
	if since == "" || err == nil || provisioners.KindOf(err) != provisioners.KindBadSpec {
		return seen, err
	}
	w.Logger.WarnContext(ctx, "where the last observation ended is not known to the cluster; it begins anew",
		"error", err)
	seen, err = o.Observe(ctx, "")
	seen.Complete = false
	return seen, err
}

// newObservation is what a look has shown, in the ledger's words.
func newObservation(provisioner string, seen provisioners.Observation) ledger.Observation {
	kept := map[string]string{}
	for _, n := range seen.Nodes {
		kept[n.Name] = n.InstanceID
	}
	out := ledger.Observation{Provisioner: provisioner, At: seen.At, Mark: string(seen.Mark), Complete: seen.Complete,
		KeepWithin: seen.KeepWithin}
	for _, work := range seen.Work {
		if work.StartedAt.IsZero() && work.Waiting != provisioners.WaitBoot && work.EndedAt.IsZero() {
			continue
		}
		out.Work = append(out.Work, newObservedWork(work, kept))
	}
	return out
}

// newObservedWork is a piece of work in the ledger's words. kept are the ids of nodes in
// keeping, by their names.
func newObservedWork(work provisioners.Work, kept map[string]string) ledger.ObservedWork {
	w := ledger.ObservedWork{
		Work: allocation.Work{ID: work.ID, QueuedAt: laterTime(work.SubmittedAt, work.EligibleAt),
			WorkOwner: capacity.WorkOwner{Account: work.Account, User: work.User, Namespace: work.Namespace,
				Queue: work.Queue}},
		Type: work.Type, StartedAt: work.StartedAt, EndedAt: work.EndedAt,
	}
	for _, part := range work.Nodes {
		w.Nodes = append(w.Nodes, ledger.WorkNode{ProviderID: kept[part.Name], GPUs: part.GPUs})
	}
	return w
}

func laterTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
