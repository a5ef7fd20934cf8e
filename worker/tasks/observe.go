package tasks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

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
	if err := unkept(observer.Keep(ctx, watch.Warm)); err != nil {
		w.Logger.WarnContext(ctx, "a node could not be kept warm; it is tried again", "error", err)
		failure = summarizeError(err)
	}
	seen, err := w.lookAt(ctx, observer, provisioners.Mark(watch.Mark))
	if err != nil {
		return fmt.Errorf("observing %s: %w", c.Task.Subject, err)
	}
	if !seen.Complete {
		w.Logger.WarnContext(ctx, "an observation is not complete; work may have begun or ended unseen", "gap", seen.Gap)
	}
	changed, err := w.Ledger.ReportObserved(ctx, c.Guard, newObservation(c.Task.Subject, seen), failure)
	if err != nil {
		return fmt.Errorf("reporting what was observed: %w", err)
	}
	w.Metrics.Observed(c.Task.Subject, changed.Started, changed.Warm, seen.Complete)
	return nil
}

// unkept is what went wrong with keeping nodes, without those that are gone: the next look
// at such a node finds that out, and what becomes of it.
func unkept(err error) error {
	all, several := err.(interface{ Unwrap() []error })
	if !several {
		if provisioners.KindOf(err) == provisioners.KindNotFound {
			return nil
		}
		return err
	}
	return errors.Join(slices.DeleteFunc(slices.Clone(all.Unwrap()), func(err error) bool {
		return provisioners.KindOf(err) == provisioners.KindNotFound
	})...)
}

// lookAt observes a cluster since the mark. A mark that is none of this cluster's, as it
// is or was set up, begins anew: what was between is not known.
func (w Work) lookAt(ctx context.Context, o provisioners.Observer, since provisioners.Mark) (
	provisioners.Observation, error) {
	seen, err := o.Observe(ctx, since)
	if since == "" || !errors.Is(err, provisioners.ErrForeignMark) {
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
		if !canBeStored(work) {
			continue // what one user wrote must not hide the work of all others
		}
		if work.StartedAt.IsZero() && work.Waiting != provisioners.WaitBoot && work.EndedAt.IsZero() {
			continue
		}
		out.Work = append(out.Work, newObservedWork(work, kept))
	}
	return out
}

// Bounds of what a cluster may tell: its users choose much of it.
const (
	mostIDBytes   = 128
	mostNameBytes = 255
	mostWorkNodes = ledger.MaxNodes
	mostNodeGPUs  = ledger.MaxPerNode
)

// canBeStored reports whether work is told in words that can be stored and shown, and in
// numbers that can be.
func canBeStored(work provisioners.Work) bool {
	for _, name := range []string{work.Account, work.User, work.Namespace, work.Queue} {
		if !isPlain(name, mostNameBytes) {
			return false
		}
	}
	few := len(work.Nodes) <= mostWorkNodes && !slices.ContainsFunc(work.Nodes,
		func(n provisioners.WorkNode) bool { return n.GPUs < 0 || n.GPUs > mostNodeGPUs })
	return work.ID != "" && isPlain(work.ID, mostIDBytes) && few
}

// isPlain reports whether a text is whole, short and without control characters.
func isPlain(text string, most int) bool {
	return len(text) <= most && utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
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
