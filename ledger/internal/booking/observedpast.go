package booking

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/observe"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// placed is the part of some work that is on a node of ours.
type placed struct {
	node node.Node
	gpus int
}

// keptParts are the parts of work that are on nodes kept warm in the pool now.
func (s *sight) keptParts(p *txn.PoolTx, w ledger.ObservedWork) []placed {
	var parts []placed
	for _, part := range w.Nodes {
		if k, found := s.kept[part.ProviderID]; found && k.pool == p {
			parts = append(parts, placed{k.node, part.GPUs})
		}
	}
	return parts
}

// warmParts are the parts of work that are on nodes which were kept warm when it began.
// While nobody watched, such a node may have been suspended or taken away, and may be
// kept again by now, which says nothing of then.
func (s *sight) warmParts(p *txn.PoolTx, w ledger.ObservedWork, started time.Time) ([]placed, error) {
	var parts []placed
	for _, part := range w.Nodes {
		if k, found := s.kept[part.ProviderID]; found && k.pool == p && !k.node.RequestedAt.After(started) {
			parts = append(parts, placed{k.node, part.GPUs})
			continue
		}
		n, found, err := s.findPast(p, part.Name, started)
		if err != nil {
			return nil, err
		}
		if found {
			parts = append(parts, placed{n, part.GPUs})
		}
	}
	return parts, nil
}

// mostPast is how many of a pool's last nodes are looked through for one that was warm.
const mostPast = 500

// findPast finds the node of the pool that stood for a node of the cluster, and was warm,
// at a time.
func (s *sight) findPast(p *txn.PoolTx, name string, at time.Time) (node.Node, bool, error) {
	if name == "" {
		return node.Node{}, false, nil
	}
	past, err := s.pastOf(p)
	if err != nil {
		return node.Node{}, false, err
	}
	boots := s.bootsOf(name)
	i := slices.IndexFunc(past, func(n node.Node) bool {
		return isAddressOf(n.Address, name) && observe.WasWarm(n, at, boots)
	})
	if i < 0 {
		return node.Node{}, false, nil
	}
	return past[i], true, nil
}

// pastOf lists the pool's nodes that are not gone and the last that are.
func (s *sight) pastOf(p *txn.PoolTx) ([]node.Node, error) {
	if past, known := s.past[p.Pool.ID]; known {
		return past, nil
	}
	past := slices.Collect(p.Nodes.All())
	gone, err := s.tx.Port.Nodes(ledger.NodeFilter{PoolID: p.Pool.ID, State: []node.State{node.Gone}},
		ledger.Page{Newest: true, Limit: mostPast})
	if err != nil {
		return nil, fmt.Errorf("listing past nodes of %s: %w", p.Pool.Name, err)
	}
	s.past[p.Pool.ID] = append(past, gone...)
	return s.past[p.Pool.ID], nil
}

// bootsOf are the times at which work began on a node after a wait that may have been for
// its boot.
func (s *sight) bootsOf(name string) []time.Time {
	if s.boots == nil {
		s.boots = map[string][]time.Time{}
		for _, w := range s.Work {
			if w.StartedAt.IsZero() || w.StartedAt.Sub(w.QueuedAt) <= allocation.ZeroWait {
				continue
			}
			for _, part := range w.Nodes {
				s.boots[part.Name] = append(s.boots[part.Name], s.hereAt(w.StartedAt))
			}
		}
	}
	return s.boots[name]
}

// isAddressOf reports whether an address of a machine is that of a cluster's node, by its
// name: itself, with a scheme, or within a domain.
func isAddressOf(address, name string) bool {
	if _, host, found := strings.Cut(address, "://"); found {
		address = host
	}
	return address == name || strings.HasPrefix(address, name+".")
}

// hold returns the slots of parts of an allocation, and devices that it holds there, besides
// those that it holds already. Which ones it really uses is its scheduler's affair; how many
// is what counts here.
func hold(p *txn.PoolTx, a allocation.Allocation, parts []placed) (slots []int, held []allocation.Held) {
	held = slices.Clone(a.Devices)
	for _, part := range parts {
		if slices.Contains(slots, part.node.Slot) {
			continue
		}
		slots = append(slots, part.node.Slot)
		left := min(part.gpus, a.Shape.GPUs()-len(held))
		for _, h := range a.Devices {
			if h.NodeID == part.node.ID {
				left--
			}
		}
		for _, d := range part.node.Devices {
			if left > 0 && p.Taken[d.UUID] == "" {
				held = append(held, allocation.Held{NodeID: part.node.ID, UUID: d.UUID})
				left--
			}
		}
	}
	slices.Sort(slots)
	return slots, held
}
