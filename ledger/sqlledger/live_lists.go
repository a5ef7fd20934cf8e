package sqlledger

import (
	"cmp"
	"slices"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
)

// Lists of what is live are taken from what is remembered: sorting many thousand rows
// for one page takes the database longer than everything else about it.

// liveReservations is a page of the live reservations, the newest first.
func (r bookingReader) liveReservations(s ledger.Scope, f ledger.BookingFilter, p ledger.Page) (
	[]reservation.Reservation, error) {
	pools, err := capacityReader(r).findLivePools(f.PoolID)
	if err != nil {
		return nil, err
	}
	after, ok, err := r.findReservationPlace(p.After)
	if err != nil || !ok {
		return []reservation.Reservation{}, err
	}
	newest := newestRows[reservation.Reservation]{limit: pageSize(p.Limit), compare: compareReservations}
	for i := range pools {
		for j := range slices.Backward(pools[i].state.Reservations) {
			row := &pools[i].state.Reservations[j]
			if filterReservation(s, &f, row) && (p.After == "" || compareReservations(&after, row) < 0) {
				newest.add(row)
			}
		}
	}
	return newest.values(), nil
}

// findReservationPlace returns of a reservation what says where it is in the list: the
// one that the page comes after may be over by now. False: there is none.
func (r bookingReader) findReservationPlace(id string) (reservation.Reservation, bool, error) {
	if id == "" {
		return reservation.Reservation{}, true, nil
	}
	return findRow[reservationRow](r.newQuery().Where("id = ?", id), "reading reservation "+id)
}

// compareReservations orders the newest first.
func compareReservations(a, b *reservation.Reservation) int {
	return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(b.ID, a.ID))
}

// filterReservation is the conditions of Reservations.
func filterReservation(s ledger.Scope, f *ledger.BookingFilter, r *reservation.Reservation) bool {
	return isInScope(s, r.OrganizationID) && filterValues(f, string(r.State()), r.MadeBy, r.UserID, r.Name) &&
		(f.Since.IsZero() || toMicros(r.Window.End) > toMicros(f.Since)) &&
		(f.Until.IsZero() || toMicros(r.Window.Start) < toMicros(f.Until))
}

// liveAllocations is a page of the live allocations, the newest first.
func (r bookingReader) liveAllocations(s ledger.Scope, f ledger.BookingFilter, p ledger.Page) (
	[]allocation.Allocation, error) {
	pools, err := capacityReader(r).findLivePools(f.PoolID)
	if err != nil {
		return nil, err
	}
	newest := newestRows[allocation.Allocation]{limit: pageSize(p.Limit),
		compare: func(a, b *allocation.Allocation) int { return cmp.Compare(b.ID, a.ID) }}
	for i := range pools {
		for j := range slices.Backward(pools[i].state.Allocations) {
			row := &pools[i].state.Allocations[j]
			if filterAllocation(s, &f, row) && (p.After == "" || row.ID < p.After) {
				newest.add(row)
			}
		}
	}
	return newest.values(), nil
}

// filterAllocation is the conditions of Allocations.
func filterAllocation(s ledger.Scope, f *ledger.BookingFilter, a *allocation.Allocation) bool {
	return isInScope(s, a.OrganizationID) && filterValues(f, string(a.State()), a.HeldBy, a.UserID, a.Name) &&
		(f.Since.IsZero() || a.EndedAt.IsZero() || toMicros(a.EndedAt) > toMicros(f.Since)) &&
		(f.Until.IsZero() || toMicros(a.RequestedAt) < toMicros(f.Until))
}

// filterValues is the conditions that reservations and allocations share.
func filterValues(f *ledger.BookingFilter, state, madeBy, userID, name string) bool {
	return (len(f.State) == 0 || slices.Contains(f.State, state)) && (f.MadeBy == "" || f.MadeBy == madeBy) &&
		(f.UserID == "" || f.UserID == userID) && (f.Name == "" || f.Name == name)
}

// isInScope is inScope of a row that is at hand.
func isInScope(s ledger.Scope, organizationID string) bool {
	return s.All || s.OrganizationID != "" && s.OrganizationID == organizationID
}

// newestRows is the first rows, in an order, of those that it is given.
type newestRows[T any] struct {
	limit   int
	compare func(a, b *T) int
	rows    []*T
}

func (n *newestRows[T]) add(row *T) {
	at, _ := slices.BinarySearchFunc(n.rows, row, n.compare)
	if at == n.limit {
		return
	}
	if n.rows = slices.Insert(n.rows, at, row); len(n.rows) > n.limit {
		n.rows = n.rows[:n.limit]
	}
}

func (n *newestRows[T]) values() []T {
	list := make([]T, len(n.rows))
	for i, row := range n.rows {
		list[i] = *row
	}
	return list
}

// poolMark is what tells one state of a pool from all others.
type poolMark struct {
	ID       string `gorm:"column:id"`
	Version  int    `gorm:"column:version"`
	Revision int64  `gorm:"column:revision"`
	Changes  int64  `gorm:"column:changes"`
}

func (poolMark) TableName() string { return "pools" }

func markOf(p *ledger.Pool) poolMark {
	return poolMark{ID: p.ID, Version: p.Version, Revision: p.Revision, Changes: p.Changes}
}

// findLivePools returns what is live in a pool, or in all; an empty id means all. Of
// pools that are as they are remembered only the marks are read.
func (r capacityReader) findLivePools(id string) ([]livePool, error) {
	var marks []poolMark
	err := r.readTogether(queryRows("reading the revisions of pools", &marks,
		"FROM pools WHERE id = ? OR ? = '' ORDER BY id", id, id))
	if err != nil {
		return nil, err
	}
	pools := make([]livePool, len(marks))
	for i, mark := range marks {
		var err error
		if pools[i], err = r.findLivePool(mark); err != nil {
			return nil, err
		}
	}
	return pools, nil
}

func (r capacityReader) findLivePool(mark poolMark) (livePool, error) {
	if p, ok := r.store.live.find(mark.ID); ok && markOf(&p.state.Pool) == mark {
		return p, nil
	}
	pool, err := readRow[poolRow](r.newQuery().Where("id = ?", mark.ID), "reading pool "+mark.ID)
	if err != nil {
		return livePool{}, err
	}
	return r.readLivePool(pool)
}
