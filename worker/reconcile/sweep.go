package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/provisioners"
)

// Result is what one sweep found.
type Result struct {
	Complete bool     // false: the provider's list was not, and nothing was concluded
	Orphans  []string // ids of machines that no node owns
	Ended    []string // of them, those whose end was asked for
	Capped   bool     // more were due than one sweep may end
	Requeued int      // nodes whose work was asked for again
}

// Sweep compares the provisioner's machines with its nodes once.
//
// The list is read first: a machine that is made between the two readings is
// then missing from the list, which at worst has its node looked at, while in
// the other order its node would be missing, and the machine would be ended.
func (s *Sweeper) Sweep(ctx context.Context, p provisioners.Provisioner) (Result, error) {
	s.reportOffers(ctx, p)
	list, err := p.List(ctx, s.cfg.Deployment)
	if err != nil {
		return Result{}, fmt.Errorf("listing machines: %w", err)
	}
	if !list.Complete {
		s.cfg.Logger.WarnContext(ctx, "a provider's list is incomplete; nothing is concluded from it", "provisioner",
			p.Name())
		return Result{}, nil
	}
	view, err := s.readView(ctx, p.Name())
	if err != nil {
		return Result{}, err
	}
	if err := s.accountStrays(ctx, p, list.Instances, view); err != nil {
		return Result{}, err
	}
	if view.recovering, err = s.isRecovering(ctx, p.Name()); err != nil {
		return Result{}, err
	}
	live := s.liveInstances(list.Instances)
	result := Result{Complete: true}
	orphans := orphansOf(live, view.nodes)
	due := s.dueOrphans(p.Name(), orphans, view.now)
	if view.recovering {
		due = nil
	}
	for _, o := range orphans {
		result.Orphans = append(result.Orphans, o.ID)
	}
	if most := max(s.cfg.KillMin, len(live)*s.cfg.KillPercent/100); len(due) > most {
		result.Capped, due = true, due[:most]
		s.cfg.Metrics.Transition(obs.Node, "orphan_cap_reached")
		s.cfg.Logger.ErrorContext(ctx,
			"more machines without a node than one sweep may end; is this the right database?",
			"provisioner", p.Name(), "orphans", len(orphans), "at_most", most)
	}
	result.Ended, err = s.endOrphans(ctx, p, due, view.now)
	var failed error
	result.Requeued, failed = s.emitLostTasks(ctx, view.neglected)
	return result, errors.Join(err, failed)
}

// reportOffers tells the ledger what the provisioner can make, so that pools can
// be held against it. A provisioner that cannot say so now is asked again.
func (s *Sweeper) reportOffers(ctx context.Context, p provisioners.Provisioner) {
	all, err := p.Offers(ctx)
	if err == nil {
		err = s.ledger.ReportOffers(ctx, p.Name(), OffersOf(all))
	}
	if err != nil {
		s.cfg.Logger.WarnContext(ctx, "what a provisioner offers is not known; it is asked again", "provisioner",
			p.Name(), "error", err)
	}
}

// OffersOf are a provisioner's offers as the ledger keeps them.
func OffersOf(all []provisioners.Offer) []ledger.Offer {
	offers := make([]ledger.Offer, len(all))
	for i, o := range all {
		offers[i] = ledger.Offer{Region: o.Region, Type: o.Type, Model: o.Model, GPUs: o.GPUs,
			MemoryMiB: o.MemoryMiB, Simulated: o.Simulated, Observed: o.Observed}
	}
	return offers
}

// liveInstances are the machines with our tag that are not on their way out. The
// provider was asked for those with our tag only; this is the second lock.
func (s *Sweeper) liveInstances(all []provisioners.Instance) []provisioners.Instance {
	var ours []provisioners.Instance
	for _, i := range all {
		if i.Owner == s.cfg.Deployment && i.Phase != provisioners.Terminating && i.Phase != provisioners.Terminated {
			ours = append(ours, i)
		}
	}
	return ours
}

// isOwner reports whether the node is the machine's: it made it, or may have. A
// node that does not know its machine yet may own any that says it is its own.
func isOwner(n node.Node, i provisioners.Instance) bool {
	if node.Machine.Terminal(n.State()) {
		return false
	}
	return n.ProviderID == "" || n.ProviderID == i.ID
}

// orphansOf returns the machines that no node owns, the oldest first: those of
// unknown nodes, of nodes that are over, and the second machine of a node.
func orphansOf(live []provisioners.Instance, nodes map[string]node.Node) []provisioners.Instance {
	var orphans []provisioners.Instance
	for _, i := range live {
		if n, known := nodes[i.NodeID]; !known || !isOwner(n, i) {
			orphans = append(orphans, i)
		}
	}
	slices.SortFunc(orphans, func(a, b provisioners.Instance) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return orphans
}

// sighting is what the sweeps know of an orphan.
type sighting struct {
	first time.Time
	tries int // to end it
}

// dueOrphans remembers the orphans of this sweep, forgets those that are none any more,
// and returns the ones with enough evidence against them: first those whose end
// was tried least often, so that one which cannot be ended is in nobody's way.
func (s *Sweeper) dueOrphans(provisioner string, orphans []provisioners.Instance,
	now time.Time) []provisioners.Instance {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, seen := s.seen[provisioner], make(map[string]*sighting, len(orphans))
	var due []provisioners.Instance
	for _, o := range orphans {
		known, again := before[o.ID]
		if !again {
			known = &sighting{first: now}
		}
		seen[o.ID] = known
		born := o.CreatedAt
		if born.IsZero() {
			born = known.first
		}
		if again && now.Sub(known.first) >= s.cfg.OrphanedFor && now.Sub(born) >= s.cfg.Grace {
			due = append(due, o)
		}
	}
	s.seen[provisioner] = seen
	slices.SortStableFunc(due,
		func(a, b provisioners.Instance) int { return cmp.Compare(seen[a.ID].tries, seen[b.ID].tries) })
	return due
}

// countTry counts a try to end the machine, and reports whether it is the first.
func (s *Sweeper) countTry(provisioner, machine string) (first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.seen[provisioner][machine]
	if known == nil {
		return true
	}
	known.tries++
	return known.tries == 1
}

// endOrphans asks for the end of each machine. One that fails does not keep the others.
func (s *Sweeper) endOrphans(ctx context.Context, p provisioners.Provisioner, due []provisioners.Instance,
	now time.Time) (ended []string, err error) {
	for _, o := range due {
		asked, failed := s.endOne(ctx, p, o, now)
		if asked {
			ended = append(ended, o.ID)
		}
		err = errors.Join(err, failed)
		if ctx.Err() != nil || provisioners.KindOf(failed) == provisioners.KindThrottled {
			break
		}
	}
	return ended, err
}

// endOne asks for the end of a machine after a last look at its node.
func (s *Sweeper) endOne(ctx context.Context, p provisioners.Provisioner, o provisioners.Instance,
	now time.Time) (asked bool, err error) {
	if owned, err := s.isOwned(ctx, o); err != nil || owned {
		return false, err
	}
	first := s.countTry(p.Name(), o.ID)
	if err := p.Delete(ctx, o.ID); err != nil && provisioners.KindOf(err) != provisioners.KindNotFound {
		return false, fmt.Errorf("ending machine %s, which no node owns: %w", o.ID, err)
	}
	if err := s.extendNodeCost(ctx, o, now); err != nil || !first {
		return true, err
	}
	if err := s.ledger.ReportOrphanEnded(ctx, p.Name(), o.ID, o.NodeID); err != nil {
		return true, fmt.Errorf("journalling the end of %s: %w", o.ID, err)
	}
	s.cfg.Metrics.Transition(obs.Node, "orphan_ended")
	s.cfg.Logger.WarnContext(ctx, "ended a machine that no node owns",
		"provisioner", p.Name(), "machine", o.ID, "node", o.NodeID, "created_at", o.CreatedAt)
	return true, nil
}

// isOwned looks at the machine's node again, whatever provisioner it is of now:
// a pool may have been given another one.
func (s *Sweeper) isOwned(ctx context.Context, o provisioners.Instance) (bool, error) {
	n, err := s.readNode(ctx, o.NodeID)
	return err == nil && n.ID != "" && isOwner(n, o), err
}
