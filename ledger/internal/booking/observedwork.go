package booking

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// Reasons of observed work, as codes.
const (
	reasonObserved  = "observed"
	reasonWorkEnded = "work_ended"
)

// grain is how exactly clusters tell times.
const grain = time.Second

// hereAt is a time of the cluster's clock by the database's. Nothing that was observed
// lies ahead of the look.
func (s *sight) hereAt(at time.Time) time.Time {
	if at.IsZero() {
		return at
	}
	return s.now.Add(-max(0, s.At.Sub(at)))
}

// noteChange counts one piece of work of a pool that changed.
func (s *sight) noteChange(p *txn.PoolTx) {
	s.left--
	s.changed[p.Pool.ID] = true
}

// addWork notes work that is met first.
func (s *sight) addWork(p *txn.PoolTx, w ledger.ObservedWork) error {
	s.noteChange(p)
	from, waitedFor := s.waitedFrom(p, w)
	a := allocation.New(allocation.Allocation{
		ID: s.tx.IDs.New(ids.Allocation), OrganizationID: p.Pool.Holders.Find(w.WorkOwner), PoolID: p.Pool.ID,
		Shape: shapeOfWork(w), Window: calendar.Interval{Start: from, End: from}, Work: w.Work,
	}, from)
	a.Slots, a.Devices = hold(p, a, s.keptParts(p, w))
	a.Work.QueuedAt, a.Work.WaitedFor = s.hereAt(w.QueuedAt), waitedFor
	if w.StartedAt.IsZero() {
		a.Devices = nil
		p.PutAllocation(a)
		s.tx.AddEvent(ledger.Event{OrganizationID: a.OrganizationID, Type: "allocation.pending", Subject: a.ID,
			PoolID: p.Pool.ID, Reason: reasonObserved,
			Message: fmt.Sprintf("the cluster boots nodes for %s", w.Label())})
		return nil
	}
	return s.startWork(p, a, w)
}

// waitedFrom is since when work waits for what Forewarm is for, nodes that boot, and what
// else it waited for. Work that an earlier look saw waiting without a node did not wait
// for a boot until now. Of work that no look has seen waiting nobody knows, and all of
// its wait counts: what is missed must not look better than it was.
func (s *sight) waitedFrom(p *txn.PoolTx, w ledger.ObservedWork) (from time.Time, waitedFor string) {
	queued, started := s.hereAt(w.QueuedAt), s.hereAt(w.StartedAt)
	reason, known := s.waited[w.ID]
	switch {
	case s.seen.At.IsZero(), !started.IsZero() && started.Before(p.Pool.CreatedAt):
		return cmp.Or(started, s.now), allocation.WaitedUnwatched // it is no start of ours to score
	case !known && w.QueuedAt.Add(grain).After(s.seen.At):
		return queued, ""
	case w.StartedAt.IsZero(): // the earlier look saw it wait, so the boot began after it
		from := s.hereAt(s.seen.At)
		if queued.After(from) {
			from = queued
		}
		return from, cmp.Or(reason, allocation.WaitedQueue)
	default:
		return started, cmp.Or(reason, allocation.WaitedQueue)
	}
}

// startWork notes that work began, and claims the promises that it came for.
func (s *sight) startWork(p *txn.PoolTx, a allocation.Allocation, w ledger.ObservedWork) error {
	started := s.hereAt(w.StartedAt)
	if started.Before(a.RequestedAt) {
		started = a.RequestedAt
	}
	warm, err := s.warmParts(p, w, started)
	if err != nil {
		return err
	}
	if watched := a.Work.WaitedFor != allocation.WaitedUnwatched; watched &&
		started.Sub(a.RequestedAt) <= allocation.ZeroWait && len(warm) == len(w.Nodes) && !joinsBoot(a, warm) {
		s.out.Warm++
		if err := s.claimFor(p, &a, warm, calendar.Interval{Start: started, End: s.hereAt(w.EndedAt)}); err != nil {
			return err
		}
	}
	if over := !w.EndedAt.IsZero(); over && (s.Complete || len(warm) > len(a.Slots)) {
		a.Devices = nil // what counts is which nodes were warm then, and their places can have others now
		a.Slots, a.Devices = hold(p, a, warm)
	}
	a, err = txn.StartObserved(s.tx, p, a, started, reasonObserved, describeStart(a, started))
	if err != nil {
		return err
	}
	s.out.Started++
	return s.endWork(p, a, s.hereAt(w.EndedAt))
}

// joinsBoot reports whether one of the nodes was not known to be up when work came for them: it
// waited for the end of the boot, however briefly, and the promise was not kept yet.
func joinsBoot(a allocation.Allocation, on []placed) bool {
	return slices.ContainsFunc(on, func(part placed) bool {
		return part.node.ReadyAt.IsZero() || part.node.ReadyAt.After(a.RequestedAt)
	})
}

// shapeOfWork is the shape that comes nearest to work: it may lie unevenly on its nodes.
func shapeOfWork(w ledger.ObservedWork) capacity.Shape {
	total, most := 0, 1
	for _, part := range w.Nodes {
		total, most = total+part.GPUs, max(most, part.GPUs)
	}
	nodes := max(1, len(w.Nodes))
	shape := capacity.Shape{Nodes: nodes, PerNode: most, Short: nodes*most - total}
	if !shape.Valid() {
		shape = capacity.Shape{Nodes: nodes, PerNode: max(1, (total+nodes-1)/nodes)}
	}
	return shape
}

// describeStart says in one sentence how work began.
func describeStart(a allocation.Allocation, started time.Time) string {
	where := "on nodes that were up"
	if len(a.Slots) > 0 {
		where = "on warm nodes"
	}
	what := fmt.Sprintf("the cluster began %s on %s", a.Work.Label(), phrase.Count(a.Shape.GPUs(), "GPU"))
	wait, noBoot := started.Sub(a.RequestedAt), a.Work.WaitedFor != "" && a.Work.WaitedFor != allocation.WaitedUnwatched
	switch {
	case wait > allocation.ZeroWait:
		return fmt.Sprintf("%s after %s", what, phrase.Span(wait))
	case noBoot:
		return fmt.Sprintf("%s %s; it had waited, not for a boot (%s)", what, where, a.Work.WaitedFor)
	case a.Work.WaitedFor == allocation.WaitedUnwatched:
		return what + ", before anybody watched"
	default:
		return fmt.Sprintf("%s %s, with zero wait", what, where)
	}
}

// followWork brings what is known of work in line with what a later look says of it. Work
// that a complete one leaves out has ended, nobody knows when exactly.
func (s *sight) followWork(p *txn.PoolTx, a allocation.Allocation, w ledger.ObservedWork, told bool) error {
	switch {
	case !told && s.Complete:
		s.noteChange(p)
		return s.endWork(p, a, s.now)
	case !told:
		return nil
	case a.State() == allocation.Pending && !w.StartedAt.IsZero():
		s.noteChange(p)
		return s.startWork(p, s.placeAgain(p, a, w), w)
	case !w.EndedAt.IsZero():
		s.noteChange(p)
		return s.endWork(p, a, s.hereAt(w.EndedAt))
	}
	s.placeAgain(p, a, w)
	return nil
}

// endWork ends work as of when it ended; the zero time: it has not.
func (s *sight) endWork(p *txn.PoolTx, a allocation.Allocation, ended time.Time) error {
	if ended.IsZero() {
		return nil
	}
	if ended.Before(a.ActiveAt) {
		ended = a.ActiveAt
	}
	message := fmt.Sprintf("%s left the queue, or was queued anew, before it began", a.Work.Label())
	if a.State() == allocation.Active {
		message = fmt.Sprintf("%s ended after %s", a.Work.Label(), phrase.Span(ended.Sub(a.ActiveAt)))
	}
	_, err := txn.EndObserved(s.tx, p, a, ended, reasonWorkEnded, message)
	MarkIdle(s.tx, p, a.Slots)
	s.out.Ended++
	return err
}

// placeAgain notes which of the work's nodes are kept warm now. Some have become ready
// since they were looked at, as work may begin on a node before its health gate is through.
// Others are kept no more: their slots are for other nodes, and what was held there stays
// written down. A look that was not complete may have missed nodes, and takes none away.
func (s *sight) placeAgain(p *txn.PoolTx, a allocation.Allocation, w ledger.ObservedWork) allocation.Allocation {
	slots, held := hold(p, a, s.keptParts(p, w))
	if w.StartedAt.IsZero() {
		held = a.Devices
	}
	if !s.Complete && len(slots) < len(a.Slots) {
		slots = a.Slots
	}
	if len(held) == len(a.Devices) && slices.Equal(slots, a.Slots) {
		return a
	}
	a.Slots, a.Devices = slots, held
	p.PutAllocation(a)
	s.noteChange(p)
	return a
}

// mostRemembered is of how much work that waits the reason is remembered until it begins.
const mostRemembered = 5000

// sumWaiting counts the work that waits by pool and reason.
func (s *sight) sumWaiting() []ledger.WaitingWork {
	var sums []ledger.WaitingWork
	for i, w := range s.Waiting {
		home := s.homeOf(ledger.ObservedWork{Type: w.Type})
		if home == nil {
			continue
		}
		at := slices.IndexFunc(sums, func(x ledger.WaitingWork) bool {
			return x.PoolID == home.Pool.ID && x.Reason == w.Reason
		})
		if at < 0 {
			at = len(sums)
			sums = append(sums, ledger.WaitingWork{PoolID: home.Pool.ID, Reason: w.Reason})
		}
		if sums[at].Count++; i < mostRemembered {
			sums[at].IDs = append(sums[at].IDs, w.ID)
		}
	}
	slices.SortFunc(sums, func(a, b ledger.WaitingWork) int {
		return cmp.Or(cmp.Compare(a.PoolID, b.PoolID), cmp.Compare(a.Reason, b.Reason))
	})
	for _, sum := range sums {
		slices.Sort(sum.IDs)
	}
	return sums
}

// findRooms finds whose the room is that was seen.
func (s *sight) findRooms() []ledger.Room {
	var rooms []ledger.Room
	for _, p := range s.pools {
		for _, r := range s.Rooms {
			if r.Type == p.Pool.Type {
				rooms = append(rooms, ledger.Room{PoolID: p.Pool.ID, At: s.now, Idle: r.Idle, Shared: r.Shared})
			}
		}
	}
	return rooms
}

// warmIDs are the provider's ids of the nodes of a pool that are to stay warm.
func warmIDs(nodes []node.Node) []string {
	var warm []string
	for _, n := range nodes {
		if n.State() == node.Booting || n.State() == node.Ready {
			warm = append(warm, n.ProviderID)
		}
	}
	return warm
}
