package booking

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// Watch says what is to be looked at in a provisioner's cluster, and which of its nodes
// are to stay warm.
func (l Booking) Watch(ctx context.Context, provisioner string) (ledger.Watch, error) {
	var out ledger.Watch
	err := l.Store.Read(ctx, func(r ledger.Reader) error {
		pools, err := ledger.ObservedPools(r, provisioner)
		if err != nil {
			return err
		}
		seen, err := r.Watched(provisioner)
		if err != nil {
			return err
		}
		out = ledger.Watch{Wanted: len(pools) > 0, Mark: seen.Mark, Now: r.Now(), BlindSince: seen.BlindSince,
			KeepAgain: keepAgain(l.Config.ObserveEvery, seen.KeepWithin)}
		for _, p := range pools {
			state, err := r.LiveState(p.ID)
			if err != nil {
				return fmt.Errorf("reading pool %s: %w", p.Name, err)
			}
			out.Warm = append(out.Warm, warmIDs(state.Nodes)...)
		}
		return nil
	})
	return out, err
}

// leastBetween bounds how often anything is asked of a cluster again, however soon it
// suspends its nodes and however much there is to catch up on.
const leastBetween = time.Second

// keepAgain is how long after a Keep the next one comes: well within the time in which warm
// nodes have to be kept again.
func keepAgain(every, keepWithin time.Duration) time.Duration {
	if keepWithin > 0 {
		return min(every, max(keepWithin/2, leastBetween))
	}
	return every
}

// Bounds of one transaction that notes what was observed: while it lasts, nobody else can
// change the pools. After an outage there may be any number of jobs.
const (
	mostAtOnce = 500 // pieces of work that it changes
	windowSize = 100 // pieces of work that it looks for at once, whether they are known
)

// ReportObserved commits what was observed, and has the cluster looked at again after
// the time between two looks, or at once where a look was full. It takes as many
// transactions as are needed, each of which may be repeated: only the last one moves the
// mark and ends the run, so that whoever is cut off between two begins with the same look.
// An observation that is reported twice changes nothing the second time.
func (l Booking) ReportObserved(ctx context.Context, g ledger.Guard, o ledger.Observation) (ledger.Observed, error) {
	var all ledger.Observed
	sortWork(o.Work)
	for from, next, last := 0, 0, false; !last; {
		var s *sight
		err := l.InOwnTx(ctx, ledger.SystemActor("observer"), func(tx *txn.Tx) (err error) {
			if s, err = openSight(tx, g, o); err != nil {
				return err
			}
			next, last, err = s.notePart(g, from)
			return err
		})
		if err != nil {
			return all, err
		}
		from = next
		all.Add(s.out)
	}
	return all, nil
}

// sortWork orders work as it began. What has not begun comes last.
func sortWork(work []ledger.ObservedWork) {
	slices.SortStableFunc(work, func(a, b ledger.ObservedWork) int {
		if a.StartedAt.IsZero() != b.StartedAt.IsZero() {
			if a.StartedAt.IsZero() {
				return 1
			}
			return -1
		}
		return cmp.Or(a.StartedAt.Compare(b.StartedAt), cmp.Compare(a.ID, b.ID))
	})
}

// sight is an observation that is noted in a transaction.
type sight struct {
	ledger.Observation
	tx    *txn.Tx
	pools []*txn.PoolTx
	// told is the observation's work by id; kept the nodes in keeping by the provider's id;
	// lived, in which pool work is counted that is not over; waited, for what work waited
	// that has not begun.
	told   map[string]ledger.ObservedWork
	kept   map[string]keptNode
	lived  map[string]bool
	waited map[string]string
	past   map[string][]node.Node // by pool, once they were asked for: see pastOf
	boots  map[string][]time.Time // by the cluster's name of a node: see bootsOf; nil: not asked for yet
	served []servedWork           // what has claimed promises in this transaction

	seen    ledger.Watched // before
	now     time.Time      // of the look, by the database's clock
	left    int            // pieces of work that may be changed yet
	changed map[string]bool
	out     ledger.Observed
}

// keptNode is a node that is kept warm, or on its way.
type keptNode struct {
	pool *txn.PoolTx
	node node.Node
}

// openSight locks the provisioner's observed pools. A run that is not the caller's any
// more is ErrFenced.
func openSight(tx *txn.Tx, g ledger.Guard, o ledger.Observation) (*sight, error) {
	if err := requireRun(tx, g); err != nil {
		return nil, err
	}
	s := &sight{Observation: o, tx: tx, now: o.SeenAt, left: mostAtOnce, changed: map[string]bool{},
		told: map[string]ledger.ObservedWork{}, kept: map[string]keptNode{}, lived: map[string]bool{},
		waited: map[string]string{}, past: map[string][]node.Node{}}
	if s.now.IsZero() {
		s.now = tx.Now()
	}
	var err error
	if s.seen, err = tx.Port.Watched(o.Provisioner); err != nil {
		return nil, err
	}
	s.seen.Provisioner = o.Provisioner
	found, err := ledger.ObservedPools(tx.Port, o.Provisioner)
	if err != nil {
		return nil, err
	}
	for _, pool := range found {
		p, err := tx.LockPool(pool.ID)
		if err != nil {
			return nil, fmt.Errorf("locking pool: %w", err)
		}
		s.addPool(p)
	}
	for _, w := range o.Work {
		s.told[w.ID] = w
	}
	for _, w := range s.seen.Waiting {
		for _, id := range w.IDs {
			s.waited[id] = w.Reason
		}
	}
	return s, nil
}

func (s *sight) addPool(p *txn.PoolTx) {
	s.pools = append(s.pools, p)
	for n := range p.Nodes.All() {
		if n.ProviderID != "" && (n.Coming() || n.State() == node.Ready) {
			s.kept[n.ProviderID] = keptNode{p, n}
		}
	}
	for _, a := range txn.LiveWork(p) {
		s.lived[a.Work.ID] = true
	}
}

// requireRun checks that a run still is who guards it: parts before the last one do not
// end it.
func requireRun(tx *txn.Tx, g ledger.Guard) error {
	t, err := tx.Port.Task(g.TaskID)
	if err != nil {
		return fmt.Errorf("reading task: %w", err)
	}
	if t.Fence != g.Fence || t.State != ledger.TaskRunning {
		return fmt.Errorf("reporting what was observed: %w", ledger.ErrFenced)
	}
	return nil
}

// notePart notes as much as one transaction may: what became of the work that is known,
// and then the work that is not. It returns from which piece the next part goes on, and
// whether this was the last one.
func (s *sight) notePart(g ledger.Guard, from int) (next int, last bool, err error) {
	if err := s.followAll(); err != nil {
		return from, false, err
	}
	if from, err = s.addUnknown(from); err != nil {
		return from, false, err
	}
	if last = s.left > 0 && from == len(s.Work); last {
		s.noteNodes()
		err = s.endLook(g)
	}
	for id := range s.changed {
		s.tx.WakePlan(id)
	}
	return from, last, err
}

// followAll brings what is known in line with what was observed.
func (s *sight) followAll() error {
	for _, p := range s.pools {
		for _, a := range txn.LiveWork(p) {
			if s.left <= 0 {
				return nil
			}
			w, told := s.told[a.Work.ID]
			if err := s.followWork(p, a, w, told); err != nil {
				return fmt.Errorf("noting what runs in %s: %w", p.Pool.Name, err)
			}
		}
	}
	return nil
}

// addUnknown notes the work from one piece on of which nothing is known, in the order in
// which it began. What never began is nothing to count.
func (s *sight) addUnknown(from int) (next int, err error) {
	for from < len(s.Work) && s.left > 0 {
		window := s.Work[from:min(len(s.Work), from+windowSize)]
		fresh, err := s.findUnknown(window)
		if err != nil {
			return from, err
		}
		for _, w := range fresh {
			if p := s.homeOf(w); p != nil {
				if err := s.addWork(p, w); err != nil {
					return from, fmt.Errorf("noting what runs in %s: %w", p.Pool.Name, err)
				}
			}
		}
		from += len(window)
	}
	return from, nil
}

func (s *sight) findUnknown(window []ledger.ObservedWork) ([]ledger.ObservedWork, error) {
	var fresh []ledger.ObservedWork
	var ids []string
	for _, w := range window {
		if !s.lived[w.ID] && (w.EndedAt.IsZero() || !w.StartedAt.IsZero()) {
			fresh, ids = append(fresh, w), append(ids, w.ID)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	pools, err := s.countedIn()
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, pool := range pools {
		found, err := s.tx.Port.ObservedWork(pool, ids)
		if err != nil {
			return nil, err
		}
		for _, id := range found {
			known[id] = true
		}
	}
	return slices.DeleteFunc(fresh, func(w ledger.ObservedWork) bool { return known[w.ID] }), nil
}

// countedIn lists the pools in which work may be counted already: those of the provisioner,
// and the deleted ones in whose place, under whose names, they were made. Work that ended for
// us with such a pool is not told a second time.
func (s *sight) countedIn() ([]string, error) {
	var all []string
	for _, p := range s.pools {
		all = append(all, p.Pool.ID)
		before, err := s.tx.Port.DeletedPool(p.Pool.Name)
		switch {
		case errors.Is(err, ledger.ErrNotFound):
		case err != nil:
			return nil, fmt.Errorf("reading the pool before %s: %w", p.Pool.Name, err)
		case before.Observed && before.Provisioner == p.Pool.Provisioner:
			all = append(all, before.ID)
		}
	}
	return all, nil
}

// homeOf is the pool that work is counted in: the one that keeps most of the nodes it was
// put on, whatever queue it was submitted to; where none keeps any, that of its type. Nil:
// it is no pool's affair.
func (s *sight) homeOf(w ledger.ObservedWork) *txn.PoolTx {
	var home *txn.PoolTx
	most, on := 0, map[string]int{}
	for _, part := range w.Nodes {
		if k, ok := s.kept[part.ProviderID]; ok {
			id := k.pool.Pool.ID
			if on[id]++; on[id] > most {
				home, most = k.pool, on[id]
			}
		}
	}
	for _, p := range s.pools {
		if home == nil && w.Type != "" && p.Pool.Type == w.Type {
			home = p
		}
	}
	return home
}

// noteNodes notes which of the nodes that are kept warm no promise can have. A node that
// was not seen is as it was.
func (s *sight) noteNodes() {
	for _, n := range s.Nodes {
		k, ok := s.kept[n.ProviderID]
		if !ok || n.ProviderID == "" {
			continue
		}
		now, _ := k.pool.FindNode(k.node.ID) // it may have changed with the work on it
		if now.Taken != n.Taken {
			now.Taken = n.Taken
			k.pool.PutNode(now)
			s.changed[k.pool.Pool.ID] = true
		}
	}
}

// endLook moves the mark and ends the run.
func (s *sight) endLook(g ledger.Guard) error {
	seen, again := s.seen, s.tx.Config.ObserveEvery
	if s.hasMore() {
		again = min(again, leastBetween)
	}
	seen.Mark, seen.KeepWithin, seen.Waiting, seen.Rooms = s.Mark, s.KeepWithin, s.sumWaiting(), s.findRooms()
	if s.Complete {
		seen.At, seen.BlindSince = s.At, time.Time{}
	} else if seen.BlindSince.IsZero() {
		seen.BlindSince = s.now
	}
	s.tx.Change.Watched = append(s.tx.Change.Watched, seen)
	return txn.RetryTask(s.tx, g, again, describeBlindness(seen.BlindSince, s.now))
}

// hasMore reports whether the look is one of many that catch up with what was missed. One
// that did not get on is repeated no sooner than any other, and so is each of a cluster of
// which no look is ever complete.
func (s *sight) hasMore() bool { return s.More && !s.Complete && s.Mark != s.seen.Mark }

// describeBlindness is what is wrong where no look was complete for long; else empty.
func describeBlindness(since, now time.Time) string {
	if since.IsZero() || now.Sub(since) < ledger.BlindAfter {
		return ""
	}
	return fmt.Sprintf("no look at its work was complete since %s: work may begin and end unseen",
		ledger.FormatTime(since))
}
