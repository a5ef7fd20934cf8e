package tasks

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/provisioners"
)

// observeCluster reports what the cluster's own scheduler did since the last look.
func (w Work) observeCluster(ctx context.Context, c Claim) error {
	observer, watch, err := w.openObserver(ctx, c)
	if err != nil || observer == nil {
		return err
	}
	seen, err := w.lookAt(ctx, observer, provisioners.Mark(watch.Mark))
	if err != nil {
		return errors.Join(fmt.Errorf("observing %s: %w", c.Task.Subject, err),
			w.Ledger.ReportBlind(ctx, c.Task.Subject))
	}
	if !seen.Complete {
		w.Logger.WarnContext(ctx, "an observation is not complete; work may have begun or ended unseen", "gap", seen.Gap,
			"since", watch.BlindSince)
	}
	changed, err := w.Ledger.ReportObserved(ctx, c.Guard, newObservation(c.Task.Subject, watch.Now, seen))
	if err != nil {
		return fmt.Errorf("reporting what was observed: %w", err)
	}
	w.Metrics.Observed(c.Task.Subject, changed.Started, changed.Warm, seen.Complete)
	return nil
}

// keepCluster keeps the nodes warm that are to be. It is a task beside that of looking, and
// comes again when the nodes need it whatever went wrong: a node that is not kept in time
// is suspended.
func (w Work) keepCluster(ctx context.Context, c Claim) error {
	observer, watch, err := w.openObserver(ctx, c)
	if err != nil || observer == nil {
		return err
	}
	failure := ""
	if len(watch.Warm) > 0 {
		if err := unkept(observer.Keep(ctx, watch.Warm)); err != nil {
			w.Logger.WarnContext(ctx, "a node could not be kept warm; it is tried again", "again_in", watch.KeepAgain,
				"error", err)
			failure = summarizeError(err)
		}
	}
	return w.Ledger.RetryTask(ctx, c.Guard, watch.KeepAgain, failure)
}

// openObserver finds who watches the cluster of a task. Where nobody does, the task is
// retried, and there is no observer: what runs there will never be heard of again.
func (w Work) openObserver(ctx context.Context, c Claim) (provisioners.Observer, ledger.Watch, error) {
	watch, err := w.Ledger.Watch(ctx, c.Task.Subject)
	if err != nil {
		return nil, watch, fmt.Errorf("reading what to observe: %w", err)
	}
	p, missing := w.findProvisioner(c.Task.Subject)
	observer, able := p.(provisioners.Observer)
	if able && watch.Wanted {
		return observer, watch, nil
	}
	if err := w.endUnwatched(ctx, c.Task.Subject, missing != nil); err != nil {
		return nil, watch, errors.Join(missing, err)
	}
	if missing != nil {
		return nil, watch, errors.Join(missing, w.Ledger.ReportBlind(ctx, c.Task.Subject))
	}
	return nil, watch, w.Ledger.RetryTask(ctx, c.Guard, w.Ledger.SweepEvery(), "")
}

// endUnwatched ends the work of a cluster that nobody watches. One that this worker does
// not know another may, for as long as its report is believed.
func (w Work) endUnwatched(ctx context.Context, provisioner string, unknown bool) error {
	if unknown {
		if known, err := w.Ledger.KnowsProvisioner(ctx, provisioner); err != nil || known {
			return err
		}
	}
	ended, err := w.Ledger.EndUnwatched(ctx, provisioner)
	if err != nil {
		return fmt.Errorf("ending what nobody watches: %w", err)
	}
	if ended > 0 {
		w.Logger.WarnContext(ctx, "nobody watches the cluster any more; what ran there counts as ended", "work", ended)
	}
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

// newObservation is what a look has shown, in the ledger's words. now is its time by the
// database's clock.
func newObservation(provisioner string, now time.Time, seen provisioners.Observation) ledger.Observation {
	out := ledger.Observation{Provisioner: provisioner, At: seen.At, SeenAt: now, Mark: string(seen.Mark),
		Complete: seen.Complete, More: seen.More, KeepWithin: seen.KeepWithin, Rooms: roomsOf(seen.Nodes)}
	kept := map[string]string{}
	for _, n := range seen.Nodes {
		if kept[n.Name] = n.InstanceID; n.InstanceID != "" {
			out.Nodes = append(out.Nodes, ledger.ObservedNode{ProviderID: n.InstanceID, Taken: takenBy(n.State)})
		}
	}
	for _, work := range seen.Work {
		switch {
		case !canBeStored(work): // what one user wrote must not hide the work of all others
		case work.StartedAt.IsZero() && work.EndedAt.IsZero() && work.Waiting != provisioners.WaitBoot:
			out.Waiting = append(out.Waiting, ledger.ObservedWait{ID: work.ID, Type: work.Type,
				Reason: waitsFor(work.Waiting)})
		default:
			out.Work = append(out.Work, newObservedWork(work, kept))
		}
	}
	return out
}

// roomsOf counts what is free on the nodes that are up, by the types that they can serve. A
// node whose processors are all in use has no room, however many of its GPUs are free.
func roomsOf(nodes []provisioners.ObservedNode) []ledger.ObservedRoom {
	byType := map[string]*ledger.ObservedRoom{}
	for _, n := range nodes {
		up := n.State == provisioners.NodeIdle || n.State == provisioners.NodeTaken
		for _, name := range n.Types {
			if byType[name] == nil {
				byType[name] = &ledger.ObservedRoom{Type: name}
			}
			free, full := n.GPUs-n.GPUsTaken, n.CPUs > 0 && n.CPUsTaken >= n.CPUs
			switch r := byType[name]; {
			case up && n.State == provisioners.NodeIdle:
				r.Idle++
			case up && free > 0 && !full:
				r.Shared = addShared(r.Shared, free)
			}
		}
	}
	rooms := []ledger.ObservedRoom{}
	for _, name := range slices.Sorted(maps.Keys(byType)) {
		rooms = append(rooms, *byType[name])
	}
	return rooms
}

// addShared counts one more node with so many free GPUs, in the order of their number.
func addShared(all []ledger.SharedNodes, free int) []ledger.SharedNodes {
	i, known := slices.BinarySearchFunc(all, free, func(n ledger.SharedNodes, free int) int { return n.Free - free })
	if !known {
		all = slices.Insert(all, i, ledger.SharedNodes{Free: free})
	}
	all[i].Nodes++
	return all
}

// takenBy is why no promise can have a node in a state; empty: one can.
func takenBy(state provisioners.NodeState) string {
	switch state {
	case provisioners.NodeTaken:
		return node.TakenByWork
	case provisioners.NodeUnavailable, provisioners.NodePoweringDown:
		return node.TakenAway
	default:
		return ""
	}
}

// waitsFor is the ledger's code of a reason for waiting.
func waitsFor(reason provisioners.Reason) string {
	switch reason {
	case provisioners.WaitResources:
		return allocation.WaitedResources
	case provisioners.WaitPriority:
		return allocation.WaitedPriority
	case provisioners.WaitLimits:
		return allocation.WaitedLimits
	case provisioners.WaitDependencies:
		return allocation.WaitedDependencies
	default:
		return allocation.WaitedOther
	}
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
		w.Nodes = append(w.Nodes, ledger.WorkNode{ProviderID: kept[part.Name], Name: part.Name, GPUs: part.GPUs})
	}
	return w
}

func laterTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
