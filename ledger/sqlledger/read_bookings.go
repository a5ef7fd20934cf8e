package sqlledger

import (
	"slices"
	"time"

	"gorm.io/gorm"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
)

// bookingReader reads reservations, allocations and schedules, and adds them up.
type bookingReader struct{ *connection }

func (r bookingReader) Reservation(s ledger.Scope, id string) (reservation.Reservation, error) {
	return readOwnRow[reservationRow](r.connection, s, "reservation", id)
}

// bookedAfter is more than how long after its window began a reservation can have been
// made: admission forgives a minute.
const bookedAfter = time.Hour

// clocksApart is more than how far the clock of a process, by which it makes ids, can be
// ahead of the database's.
const clocksApart = 24 * time.Hour

func (r bookingReader) Reservations(s ledger.Scope, f ledger.BookingFilter, p ledger.Page) (
	[]reservation.Reservation, error,
) {
	if r.isSnapshot && f.Live && p.Newest {
		return r.liveReservations(s, f, p)
	}
	db := filterBookings(r.ownRows(s), f)
	if f.MadeBy != "" {
		db = db.Where("made_by = ?", f.MadeBy)
	}
	if f.Live {
		db = db.Where(liveReservation)
	}
	if !f.Since.IsZero() {
		db = db.Where("window_end > ?", toMicros(f.Since))
	}
	if !f.Until.IsZero() {
		db = db.Where("window_start < ?", toMicros(f.Until))
	}
	if p.Newest {
		if !f.Until.IsZero() && !f.Live { // where the walk through the newest begins
			db = db.Where("created_at < ?", toMicros(f.Until.Add(bookedAfter)))
		}
		return listRows[reservationRow](newestPage(db, "reservations", f.Live, p), "listing reservations")
	}
	return listRows[reservationRow](onPage(db, p), "listing reservations")
}

// newestPage narrows a query to one page, the newest first, of rows whose ids are
// not in the order of time: those of keys are random, and a reservation of a
// schedule has an id made of its date.
//
// few says that few rows match, which an index of their own finds: those are sorted.
// Otherwise the rows are read in the order of an index. A plus sign tells both databases
// not to look for the few in the index of all.
func newestPage(db *gorm.DB, table string, few bool, p ledger.Page) *gorm.DB {
	created := "created_at"
	if few {
		created = "+created_at"
	}
	if p.After != "" {
		db = db.Where("("+created+", id) < (SELECT created_at, id FROM "+table+" WHERE id = ?)", p.After)
	}
	return db.Order(created + " DESC, id DESC").Limit(pageSize(p.Limit))
}

func filterBookings(db *gorm.DB, f ledger.BookingFilter) *gorm.DB {
	if f.PoolID != "" {
		db = db.Where("pool_id = ?", f.PoolID)
	}
	if len(f.State) > 0 {
		db = db.Where("state IN ?", f.State)
	}
	if f.UserID != "" {
		db = db.Where("user_id = ?", f.UserID)
	}
	if f.Name != "" {
		db = db.Where("name = ?", f.Name).Where("name <> ''") // the condition of the index
	}
	return db
}

func (r bookingReader) Allocation(s ledger.Scope, id string) (allocation.Allocation, error) {
	a, err := readOwnRow[allocationRow](r.connection, s, "allocation", id)
	if err != nil {
		return a, err
	}
	list, err := r.readHeldDevices([]allocation.Allocation{a})
	return list[0], err
}

func (r bookingReader) AllocationsByID(wanted []string) ([]allocation.Allocation, error) {
	var out []allocation.Allocation
	for part := range slices.Chunk(wanted, atOnce) {
		all, err := listRows[allocationRow](r.newQuery().Where("id IN ?", part), "reading allocations")
		if err != nil {
			return nil, err
		}
		out = append(out, all...)
	}
	return out, nil
}

func (r bookingReader) AllocationsOn(nodeID string) ([]allocation.Allocation, error) {
	held := "id IN (SELECT allocation_id FROM allocation_gpus WHERE until IS NULL AND gpu_uuid IN " +
		"(SELECT uuid FROM gpus WHERE node_id = ?))" // by GPU, as the other index has all that ever was there
	return listRows[allocationRow](r.newQuery().Where(held, nodeID).Order("id"), "reading the allocations on node "+nodeID)
}

func (r bookingReader) Holders(wanted []string) (map[string]string, error) {
	of := make(map[string]string, len(wanted))
	for part := range slices.Chunk(wanted, atOnce) {
		var rows []struct{ ID, OrganizationID string }
		err := r.newQuery().Table("allocations").Select("id", "organization_id").Where("id IN ?", part).Scan(&rows).Error
		if err != nil {
			return nil, wrapError("reading whose allocations are", err)
		}
		for _, row := range rows {
			of[row.ID] = row.OrganizationID
		}
	}
	return of, nil
}

func (r bookingReader) Allocations(s ledger.Scope, f ledger.BookingFilter, p ledger.Page) (
	[]allocation.Allocation, error,
) {
	if r.isSnapshot && f.Live && p.Newest {
		return r.liveAllocations(s, f, p)
	}
	db := filterBookings(r.ownRows(s), f)
	if f.MadeBy != "" {
		db = db.Where("held_by = ?", f.MadeBy)
	}
	if f.Live {
		db = db.Where(liveAllocation)
	}
	if !f.Since.IsZero() {
		db = db.Where("(ended_at = 0 OR ended_at > ?)", toMicros(f.Since))
	}
	if !f.Until.IsZero() {
		db = db.Where("requested_at < ?", toMicros(f.Until))
		if p.Newest && !f.Live { // where the walk through the newest begins
			db = db.Where("id < ?", ids.First(ids.Allocation, f.Until.Add(clocksApart)))
		}
	}
	if f.Live {
		db = fewOnPage(db, p)
	} else {
		db = onPage(db, p)
	}
	allocations, err := listRows[allocationRow](db, "listing allocations")
	if err != nil {
		return nil, err
	}
	return r.readHeldDevices(allocations)
}

// workAtOnce is how much work one statement looks for.
const workAtOnce = 500

// ObservedWork finds them by their index.
func (r bookingReader) ObservedWork(poolID string, work []string) ([]string, error) {
	var found []string
	for ids := range slices.Chunk(work, workAtOnce) {
		var some []string
		if err := r.newQuery().Table("allocations").Where("pool_id = ? AND work <> '' AND work IN ?", poolID, ids).
			Pluck("work", &some).Error; err != nil {
			return nil, wrapError("looking for observed work", err)
		}
		found = append(found, some...)
	}
	return found, nil
}

// readHeldDevices adds to a page of allocations the devices that they hold or held.
func (r bookingReader) readHeldDevices(allocations []allocation.Allocation) ([]allocation.Allocation, error) {
	ids := make([]string, len(allocations))
	for i, a := range allocations {
		ids[i] = a.ID
	}
	var holds []holdRow
	err := r.newQuery().Where("allocation_id IN ?", ids).Order("allocation_id, idx").Find(&holds).Error
	return attachHeldDevices(allocations, holds), wrapError("reading held devices", err)
}

// attachHeldDevices adds holds, which are in order, to their allocations.
func attachHeldDevices(allocations []allocation.Allocation, holds []holdRow) []allocation.Allocation {
	at := make(map[string]int, len(allocations))
	for i, a := range allocations {
		at[a.ID] = i
	}
	for _, h := range holds {
		if i, ok := at[h.AllocationID]; ok {
			allocations[i].Devices = append(allocations[i].Devices, allocation.Held{NodeID: h.NodeID, UUID: h.UUID})
		}
	}
	return allocations
}

func (r bookingReader) Schedule(s ledger.Scope, id string) (ledger.Schedule, error) {
	return readOwnRow[scheduleRow](r.connection, s, "schedule", id)
}

func (r bookingReader) Schedules(s ledger.Scope, p ledger.Page) ([]ledger.Schedule, error) {
	return listRows[scheduleRow](onPage(r.ownRows(s).Where("deleted_at = 0"), p), "listing schedules")
}
