package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/provisioners"
)

// accountStrays writes down what machines cost that no node stands for, from their
// birth until their provider stops charging. Without it their price would be in
// the provider's bill and in nobody's account.
func (s *Sweeper) accountStrays(ctx context.Context, p provisioners.Provisioner, all []provisioners.Instance,
	v view) error {
	strays, err := s.findStrays(ctx, all, v)
	if err != nil {
		return err
	}
	open, err := s.openOrphans(ctx, p.Name())
	if err != nil {
		return err
	}
	var changed []ledger.Orphan
	for _, i := range strays {
		o, known := open[i.ID]
		delete(open, i.ID)
		if !known {
			if err := s.suspectLostHistory(ctx, p, i); err != nil {
				return err
			}
			if o, err = s.priceOrphan(ctx, p, i); err != nil {
				return err
			}
		}
		if o.BilledUntil = s.billedUntil(i, v.now); known && o.BilledUntil.IsZero() {
			continue
		}
		changed = append(changed, o)
	}
	seen := changed
	for _, o := range open { // a complete list lacks it: its end was not seen, and may still be
		o.BilledUntil = v.now
		changed = append(changed, o)
	}
	if len(changed) == 0 {
		return nil
	}
	if err := s.ledger.ReportOrphan(ctx, changed...); err != nil {
		return fmt.Errorf("writing down what orphans cost: %w", err)
	}
	s.rememberClosed(seen)
	return nil
}

// suspectLostHistory has the pools of the provisioner only reconcile when a machine that
// stands has our tag and a node that the ledger never had. An intent is
// committed before its machine is asked for, and nodes are never deleted: so
// either the database is older than the machine, or somebody else uses our
// name. To end the machine would be wrong in both cases until a person has
// looked. A machine that is written down already was looked at.
func (s *Sweeper) suspectLostHistory(ctx context.Context, p provisioners.Provisioner, i provisioners.Instance) error {
	if i.Phase == provisioners.Terminating || i.Phase == provisioners.Terminated {
		return nil
	}
	known, err := s.knowsNode(ctx, i.NodeID)
	if err != nil || known {
		return err
	}
	began, err := s.ledger.BeginRecovery(ctx, ledger.SystemActor("reconcile"), p.Name(),
		fmt.Sprintf("machine %s of %s is tagged for node %q, which this database never had", i.ID, p.Name(), i.NodeID))
	if err != nil {
		return fmt.Errorf("stopping what acts on a database that does not know machine %s: %w", i.ID, err)
	}
	if began > 0 {
		s.cfg.Logger.ErrorContext(ctx,
			"a machine has our tag and a node that this database never had: is it a restored backup, or does "+
				"another installation have our name? Pools only reconcile until `forewarm recovery confirm`",
			"provisioner", p.Name(), "machine", i.ID, "node", i.NodeID, "pools", began)
	}
	return nil
}

func (s *Sweeper) knowsNode(ctx context.Context, nodeID string) (known bool, err error) {
	err = s.ledger.Store().Read(ctx, func(r ledger.Reader) error {
		_, err := r.Node(nodeID)
		known = err == nil
		if errors.Is(err, ledger.ErrNotFound) {
			return nil
		}
		return err
	})
	if err != nil {
		return false, fmt.Errorf("reading node %s: %w", nodeID, err)
	}
	return known, nil
}

// billedUntil is when the machine's bill ended; zero while it goes on.
func (s *Sweeper) billedUntil(i provisioners.Instance, now time.Time) time.Time {
	switch {
	case i.Phase != provisioners.Terminated:
		return time.Time{}
	case i.EndedAt.IsZero():
		return now
	default:
		return i.EndedAt
	}
}

// findStrays are the machines with our tag that are on no node's account, in
// whatever phase. A node that does not know its machine yet may still come to.
func (s *Sweeper) findStrays(ctx context.Context, all []provisioners.Instance, v view) (
	[]provisioners.Instance, error) {
	var strays []provisioners.Instance
	for _, i := range all {
		if i.Owner != s.cfg.Deployment || i.Phase == provisioners.Terminated && s.isClosed(i.ID) {
			continue
		}
		n, live := v.nodes[i.NodeID]
		if live && isOwner(n, i) {
			continue
		}
		accounted, err := s.isAccounted(ctx, i)
		if err != nil {
			return nil, err
		}
		if !accounted {
			strays = append(strays, i)
		}
	}
	return strays, nil
}

// isAccounted reports whether a node, which may be over, had the machine.
func (s *Sweeper) isAccounted(ctx context.Context, i provisioners.Instance) (bool, error) {
	n, err := s.readNode(ctx, i.NodeID)
	switch {
	case err != nil || n.ID == "":
		return false, err
	case n.ProviderID != i.ID:
		return isOwner(n, i), nil
	case node.Machine.Terminal(n.State()) && i.Phase == provisioners.Terminated && !i.EndedAt.IsZero():
		return true, s.extendNodeCost(ctx, i, i.EndedAt)
	}
	return true, nil
}

// readNode returns the zero node where there is none of the id.
func (s *Sweeper) readNode(ctx context.Context, id string) (n node.Node, err error) {
	err = s.ledger.Store().Read(ctx, func(r ledger.Reader) (err error) {
		n, err = r.Node(id)
		return err
	})
	if errors.Is(err, ledger.ErrNotFound) {
		return node.Node{}, nil
	}
	if err != nil {
		return n, fmt.Errorf("reading node %s: %w", id, err)
	}
	return n, nil
}

// extendNodeCost corrects the account of a node that was over before its machine: a
// provider had denied twice that it stood. Its last word is what it charges by.
func (s *Sweeper) extendNodeCost(ctx context.Context, i provisioners.Instance, until time.Time) error {
	err := s.ledger.ReportBilled(ctx, i.NodeID, i.ID, until)
	if err != nil && !errors.Is(err, ledger.ErrNotFound) {
		return fmt.Errorf("correcting the account of node %s: %w", i.NodeID, err)
	}
	return nil
}

func (s *Sweeper) openOrphans(ctx context.Context, provisioner string) (map[string]ledger.Orphan, error) {
	open := map[string]ledger.Orphan{}
	err := s.ledger.Store().Read(ctx, func(r ledger.Reader) error {
		orphans, err := r.Orphans(ledger.OrphanFilter{Provisioner: provisioner, Billed: true})
		for _, o := range orphans {
			open[o.Machine] = o
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the orphans of %s: %w", provisioner, err)
	}
	return open, nil
}

// priceOrphan is a machine with the price that it was asked for at, where a node is
// known that asked for it, and else the one its provider offers its type for: what
// a provider says of a machine does not tell its region.
func (s *Sweeper) priceOrphan(ctx context.Context, p provisioners.Provisioner,
	i provisioners.Instance) (ledger.Orphan, error) {
	o := ledger.Orphan{
		Machine: i.ID, NodeID: i.NodeID, BilledFrom: i.CreatedAt,
		Source: capacity.Offering{Provisioner: p.Name(), Type: i.Type},
	}
	offers, err := p.Offers(ctx)
	if err != nil {
		return o, fmt.Errorf("asking for the price of %s: %w", i.Type, err)
	}
	at := slices.IndexFunc(offers, func(offer provisioners.Offer) bool { return offer.Type == i.Type })
	if at >= 0 {
		o.GPUs, o.Source.Region = offers[at].GPUs, offers[at].Region
		o.Source.Price, o.Source.MinBilling = offers[at].Price, offers[at].MinBilling
	}
	n, err := s.readNode(ctx, i.NodeID)
	switch {
	case err != nil:
		return o, err
	case n.Offering.Provisioner == p.Name() && n.Offering.Type == i.Type:
		o.Source = n.Offering
	case at < 0:
		s.cfg.Logger.WarnContext(ctx,
			"a machine without a node has a type that is no longer offered: its price is unknown",
			"provisioner", p.Name(), "machine", i.ID, "type", i.Type)
	}
	return o, nil
}

// rememberClosed remembers machines whose account is closed: providers list them for a
// while. Losing it costs a write.
func (s *Sweeper) rememberClosed(orphans []ledger.Orphan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range orphans {
		if !o.BilledUntil.IsZero() {
			s.settled[o.Machine] = true
		}
	}
	if len(s.settled) > settledLimit {
		clear(s.settled)
	}
}

// settledLimit bounds what is remembered of closed accounts.
const settledLimit = 10_000

func (s *Sweeper) isClosed(machine string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.settled[machine]
}
