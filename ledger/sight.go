package ledger

import (
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/node"
)

// Sight is what somebody sees of nodes and their devices. Every answer that shows
// some passes here. Operators see all. A tenant sees the live nodes on which it
// holds GPUs or has a booking placed, and of their devices those that it holds;
// where Config.TenantsSeeNodes is set it sees all nodes and devices, and still not
// whose they are. The zero Sight sees nothing.
type Sight struct {
	Scope Scope
	Open  bool
}

// Place is one slot of a pool.
type Place struct {
	PoolID string
	Slot   int
}

// Nodes lists the nodes that are seen.
func (s Sight) Nodes(r Reader, f NodeFilter, p Page) ([]node.Node, error) {
	if s.Open {
		return r.Nodes(f, p)
	}
	places, err := s.seenPlaces(r)
	if err != nil || len(places) == 0 {
		return nil, err
	}
	f.Places, f.Live = places, true
	return r.Nodes(f, p)
}

// Node reads a node that is seen; any other is ErrNotFound.
func (s Sight) Node(r Reader, id string) (node.Node, error) {
	n, err := r.Node(id)
	if err != nil || s.Open {
		return n, err
	}
	places, err := s.seenPlaces(r)
	if err != nil {
		return node.Node{}, err
	}
	if node.Machine.Terminal(n.State()) || !slices.Contains(places, Place{PoolID: n.PoolID, Slot: n.Slot}) {
		return node.Node{}, fmt.Errorf("reading node %s: %w", id, ErrNotFound)
	}
	return n, nil
}

// Devices are those of a pool that are seen, each with its holder if that one is
// seen, too.
func (s Sight) Devices(p PoolState, now time.Time) []Device {
	var out []Device
	for _, d := range p.Devices(now) {
		own := s.Scope.All || d.Holder != nil && s.Scope.OrganizationID != "" &&
			d.Holder.OrganizationID == s.Scope.OrganizationID
		if !own {
			d.Holder = nil
		}
		if own || s.Open {
			out = append(out, d)
		}
	}
	return out
}

// DeviceSince returns from when on it may be told what a device did that is seen: zero where
// all is seen, else when it was handed to whoever holds it; not ok: of a device that is not
// seen, nothing.
func (s Sight) DeviceSince(d Device) (since time.Time, ok bool) {
	if s.Open {
		return time.Time{}, true
	}
	if d.Holder == nil {
		return time.Time{}, false
	}
	return d.Holder.ActiveAt, true
}

// seenPlaces are the slots on which the scope holds something or has it booked.
func (s Sight) seenPlaces(r Reader) ([]Place, error) {
	var out []Place
	held, err := pagesOf(func(p Page) ([]booked, error) {
		list, err := r.Allocations(s.Scope, BookingFilter{Live: true}, p)
		return bookedOf(list, func(i int) booked { return booked{list[i].ID, list[i].PoolID, list[i].Slots} }), err
	})
	if err != nil {
		return nil, fmt.Errorf("reading what is held: %w", err)
	}
	promised, err := pagesOf(func(p Page) ([]booked, error) {
		list, err := r.Reservations(s.Scope, BookingFilter{Live: true}, p)
		return bookedOf(list, func(i int) booked {
			if !list[i].Placed() {
				return booked{id: list[i].ID}
			}
			return booked{list[i].ID, list[i].PoolID, list[i].Slots}
		}), err
	})
	if err != nil {
		return nil, fmt.Errorf("reading what is booked: %w", err)
	}
	for _, b := range append(held, promised...) {
		for _, slot := range b.slots {
			if at := (Place{PoolID: b.poolID, Slot: slot}); !slices.Contains(out, at) {
				out = append(out, at)
			}
		}
	}
	return out, nil
}

// booked is where one booking lies.
type booked struct {
	id, poolID string
	slots      []int
}

func bookedOf[T any](list []T, at func(int) booked) []booked {
	out := make([]booked, len(list))
	for i := range list {
		out[i] = at(i)
	}
	return out
}

// pagesOf reads a list to its end.
func pagesOf(read func(Page) ([]booked, error)) ([]booked, error) {
	var all []booked
	page := Page{Limit: maxPageRows}
	for {
		some, err := read(page)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
		if len(some) < page.Limit {
			return all, nil
		}
		page.After = some[len(some)-1].id
	}
}

// maxPageRows is the most rows that the store reads at once.
const maxPageRows = 500
