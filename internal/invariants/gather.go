package invariants

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
)

// pageSize is how many rows one question asks for.
const pageSize = 500

// Gather reads all rows of one snapshot. With history it also reads what is over
// and the journal, both of which grow for ever. PostgreSQL shows an event only
// when no older transaction is open, so a violation of NoSilence in what ended a
// moment ago must be found twice to be one.
func Gather(r ledger.Reader, history bool) (Rows, error) {
	rows := Rows{Now: r.Now(), Committed: map[string]*calendar.Profile{}}
	var err error
	if rows.Organizations, err = readEvery(func(p ledger.Page) ([]ledger.Organization, error) {
		return r.Organizations(ledger.Scope{All: true}, p)
	}, func(o ledger.Organization) string { return o.ID }); err != nil {
		return rows, fmt.Errorf("reading organizations: %w", err)
	}
	for _, org := range rows.Organizations {
		c, err := r.Commitments(org.ID)
		if err != nil {
			return rows, fmt.Errorf("reading commitments: %w", err)
		}
		rows.Committed[org.ID] = c.All.Of(quota.GPUs)
		if err := checkCommitted(r, org.ID, &c); err != nil {
			return rows, err
		}
	}
	pools, err := readEvery(r.Pools, func(p ledger.Pool) string { return p.ID })
	if err != nil {
		return rows, fmt.Errorf("reading pools: %w", err)
	}
	for _, p := range pools {
		state, err := r.PoolState(p.ID)
		if err != nil {
			return rows, fmt.Errorf("reading pool %s: %w", p.Name, err)
		}
		rows.Pools = append(rows.Pools, state)
		if err := checkRemembered(r, state); err != nil {
			return rows, err
		}
	}
	if !history {
		return rows, nil
	}
	return rows, rows.gatherPast(r)
}

// checkCommitted compares what the store remembers of an organization's commitments with
// what its rows add up to.
func checkCommitted(r ledger.Reader, organizationID string, c *ledger.Commitments) error {
	remembered, err := r.LiveCommitments(organizationID)
	if err != nil {
		return fmt.Errorf("reading what is remembered of commitments: %w", err)
	}
	same := sameSums(&c.All, &remembered.All) && sameSums(&c.Speculative, &remembered.Speculative) &&
		sameParts(c.ByKey, remembered.ByKey) && sameParts(c.ByUser, remembered.ByUser)
	if !same {
		return fmt.Errorf("what is remembered of the commitments of %s is not what its rows add up to: %+v, and %+v",
			organizationID, remembered, *c)
	}
	return nil
}

// sameParts compares sums by key or person. One on which nothing counts may be missing.
func sameParts(a, b map[string]*quota.Commitments) bool {
	nothing := &quota.Commitments{}
	for id := range a {
		if !sameSums(a[id], cmp.Or(b[id], nothing)) {
			return false
		}
	}
	for id := range b {
		if a[id] == nil && !sameSums(b[id], nothing) {
			return false
		}
	}
	return true
}

// sameSums compares all that two sums say.
func sameSums(a, b *quota.Commitments) bool {
	days := a.Days()
	if !slices.Equal(days, b.Days()) {
		return false
	}
	for _, day := range days {
		if a.On(day) != b.On(day) {
			return false
		}
	}
	var at time.Time
	for more := true; more; {
		next, again := a.Next(at)
		other, too := b.Next(at)
		if again != too || !next.Equal(other) || a.At(next) != b.At(next) {
			return false
		}
		at, more = next, again
	}
	return true
}

// checkRemembered compares what the store remembers of a pool with what it has.
func checkRemembered(r ledger.Reader, state ledger.PoolState) error {
	remembered, err := r.LiveState(state.Pool.ID)
	if err != nil {
		return fmt.Errorf("reading what is remembered of pool %s: %w", state.Pool.Name, err)
	}
	if !reflect.DeepEqual(remembered.Pool, state.Pool) || !reflect.DeepEqual(remembered.Nodes, state.Nodes) ||
		!reflect.DeepEqual(remembered.Reservations, state.Reservations) ||
		!reflect.DeepEqual(remembered.Allocations, state.Allocations) ||
		!reflect.DeepEqual(remembered.Uses, state.Uses) {
		return fmt.Errorf("what is remembered of pool %s is not what it has: %+v, and %+v", state.Pool.Name, remembered,
			state)
	}
	return nil
}

func (rows *Rows) gatherPast(r ledger.Reader) error {
	all := ledger.Scope{All: true}
	reservations, err := readEvery(func(p ledger.Page) ([]reservation.Reservation, error) {
		return r.Reservations(all, ledger.BookingFilter{}, p)
	}, func(v reservation.Reservation) string { return v.ID })
	if err != nil {
		return fmt.Errorf("reading reservations: %w", err)
	}
	for _, v := range reservations {
		if !v.Live() {
			rows.OverReservations = append(rows.OverReservations, v)
		}
	}
	allocations, err := readEvery(func(p ledger.Page) ([]allocation.Allocation, error) {
		return r.Allocations(all, ledger.BookingFilter{}, p)
	}, func(a allocation.Allocation) string { return a.ID })
	if err != nil {
		return fmt.Errorf("reading allocations: %w", err)
	}
	for _, a := range allocations {
		if !a.Live() {
			rows.OverAllocations = append(rows.OverAllocations, a)
		}
	}
	rows.Events = []ledger.Event{}
	for after := int64(0); ; {
		events, err := r.Events(all, ledger.EventFilter{After: after}, pageSize)
		if err != nil {
			return fmt.Errorf("reading events: %w", err)
		}
		if len(events) == 0 {
			return nil
		}
		rows.Events, after = append(rows.Events, events...), events[len(events)-1].Seq
	}
}

// readEvery reads a list page by page.
func readEvery[T any](list func(ledger.Page) ([]T, error), id func(T) string) ([]T, error) {
	var all []T
	for page := (ledger.Page{Limit: pageSize}); ; {
		rows, err := list(page)
		if err != nil {
			return nil, err
		}
		all = append(all, rows...)
		if len(rows) < page.Limit {
			return all, nil
		}
		page.After = id(rows[len(rows)-1])
	}
}
