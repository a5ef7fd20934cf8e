package sqlledger

import (
	"maps"
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
)

// spentSums are what the ended bookings of a pool have spent, from a day on. They are
// never changed: others may read them.
type spentSums struct {
	from int64 // microseconds; the beginning of a day
	sums map[spentKey]spentRow
}

// spentKey is what sums are kept by. Its class is empty for allocations.
type spentKey struct {
	organization, madeBy, user, class string
	day                               int64
}

func (r spentRow) key() spentKey {
	return spentKey{r.OrganizationID, r.MadeBy, r.UserID, r.Class, r.Day}
}

// readSpent adds up the rows of a pool that are over, from a day on.
func (r capacityReader) readSpent(poolID string, from int64) (*spentSums, error) {
	var reserved, held []spentRow
	err := r.readTogether(
		queryRows("adding up what reservations spent", &reserved, reservedInPool, poolID, from),
		queryRows("adding up what allocations spent", &held, heldInPool, poolID, from))
	s := &spentSums{from: from, sums: map[spentKey]spentRow{}}
	for _, row := range append(reserved, held...) {
		s.sums[row.key()] = row
	}
	return s, err
}

// addEnded returns the sums with the bookings that ended since. A row that is over is
// never written again, so each comes once.
func (s *spentSums) addEnded(since ledger.PoolState) *spentSums {
	if s == nil {
		return nil
	}
	out := &spentSums{from: s.from, sums: maps.Clone(s.sums)}
	for i := range since.Reservations {
		out.addRow(reservationSpent(&since.Reservations[i]))
	}
	for i := range since.Allocations {
		out.addRow(allocationSpent(&since.Allocations[i]))
	}
	return out
}

func (s *spentSums) addRow(row spentRow) {
	if row.PoolID == "" || row.Day*dayMicros < s.from {
		return
	}
	sum := s.sums[row.key()]
	row.Cost += sum.Cost
	row.GPUSeconds += sum.GPUSeconds
	row.GPUMicros += sum.GPUMicros
	s.sums[row.key()] = row
}

// reservationSpent is what a reservation that is over spent, in the words of
// reservationsSpent; the zero row: it spent nothing, or is not over.
func reservationSpent(r *reservation.Reservation) spentRow {
	if r.Live() || r.Cost == 0 && r.WarmedAt.IsZero() {
		return spentRow{}
	}
	row := spentRow{OrganizationID: r.OrganizationID, MadeBy: r.MadeBy, UserID: r.UserID, PoolID: r.PoolID,
		Class: string(r.Class), Day: toMicros(r.Window.Start) / dayMicros, Cost: int64(r.Cost)}
	if !r.WarmedAt.IsZero() {
		row.GPUSeconds = int64(r.Shape.GPUs()) * (heldMicros(r.WarmedAt, r.EndedAt) / 1_000_000)
	}
	return row
}

// allocationSpent is the same of an allocation, in the words of allocationsSpent.
func allocationSpent(a *allocation.Allocation) spentRow {
	if a.Live() || a.ActiveAt.IsZero() || a.Observed() {
		return spentRow{}
	}
	gpus, held := int64(a.Shape.GPUs()), heldMicros(a.ActiveAt, a.EndedAt)
	return spentRow{OrganizationID: a.OrganizationID, MadeBy: a.HeldBy, UserID: a.UserID, PoolID: a.PoolID,
		Day: toMicros(a.Window.Start) / dayMicros, GPUSeconds: gpus * (held / 1_000_000), GPUMicros: gpus * held}
}

// heldMicros is the time between two moments, none if the second is earlier.
func heldMicros(from, until time.Time) int64 { return max(0, toMicros(until)-toMicros(from)) }
