package sqlledger

import (
	"time"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/gpu"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
)

// placedStates is reservation.Placed.
const placedStates = "state IN ('booked', 'warming', 'ready')"

// inAnyPool holds for every booking. It leads to the indexes of what is live and
// what is over, which begin with the pool: an organization's own would have to be
// kept up by every new row.
const inAnyPool = "pool_id IN (SELECT id FROM pools)"

const dayMicros = int64(24 * time.Hour / time.Microsecond)

// Commitments adds up from the rows themselves: a counter kept beside them would
// one day differ.
func (r *reader) Commitments(organizationID string) (ledger.Commitments, error) {
	c := ledger.Commitments{ByKey: map[string]*quota.Commitments{}}
	if err := r.addPromised(&c, organizationID); err != nil {
		return c, wrap("adding up reservations", err)
	}
	if err := r.addHeld(&c, organizationID); err != nil {
		return c, wrap("adding up allocations", err)
	}
	return c, wrap("adding up costs", r.addDays(&c, organizationID))
}

// bookedRow is as much of a booking as counts.
type bookedRow struct {
	Class   string `gorm:"column:class"`
	MadeBy  string `gorm:"column:made_by"`
	Start   int64  `gorm:"column:window_start"`
	End     int64  `gorm:"column:window_end"`
	Nodes   int    `gorm:"column:nodes"`
	PerNode int    `gorm:"column:per_node"`
}

func (b bookedRow) window() calendar.Interval {
	return calendar.Interval{Start: moment(b.Start), End: moment(b.End)}
}

func (b bookedRow) demand() quota.Vector {
	return quota.Vector{quota.GPUs: int64(b.Nodes * b.PerNode)}
}

// addPromised counts the GPUs of reservations that have a place.
func (r *reader) addPromised(c *ledger.Commitments, organizationID string) error {
	var rows []bookedRow
	err := r.query().Raw(`
		SELECT class, made_by, window_start, window_end, nodes, per_node FROM reservations
		WHERE organization_id = ? AND `+inAnyPool+" AND "+liveReservation+" AND "+placedStates, organizationID).Scan(&rows).Error
	for _, row := range rows {
		for _, part := range parts(c, row.Class, row.MadeBy) {
			part.Hold(row.window(), row.demand())
		}
	}
	return err
}

// addHeld counts the GPUs of allocations that are not over.
func (r *reader) addHeld(c *ledger.Commitments, organizationID string) error {
	var rows []bookedRow
	err := r.query().Raw(
		"SELECT window_start, window_end, nodes, per_node FROM allocations WHERE organization_id = ? AND "+inAnyPool+" AND "+liveAllocation,
		organizationID).Scan(&rows).Error
	for _, row := range rows {
		c.All.Hold(row.window(), row.demand())
	}
	return err
}

// addDays adds up cost by the UTC day of the window's start, from today on. What
// was not promised yet, or never, costs nothing.
func (r *reader) addDays(c *ledger.Commitments, organizationID string) error {
	for _, condition := range []string{
		"organization_id = ? AND " + liveReservation + " AND state <> 'awaiting_approval'",
		"organization_id || '' = ? AND " + overReservation, // not by its index: all that it ever had is in there
	} {
		if err := r.addDaysWhere(c, organizationID, condition); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) addDaysWhere(c *ledger.Commitments, organizationID, condition string) error {
	var rows []struct {
		Day    int64  `gorm:"column:day"`
		Class  string `gorm:"column:class"`
		MadeBy string `gorm:"column:made_by"`
		Cost   int64  `gorm:"column:cost"`
	}
	err := r.query().Raw(`
		SELECT window_start / ? AS day, class, made_by, CAST(SUM(cost) AS BIGINT) AS cost FROM reservations
		WHERE window_start >= ? AND `+inAnyPool+" AND "+condition+`
		GROUP BY 1, 2, 3`, dayMicros, micros(quota.Day(r.Now())), organizationID).Scan(&rows).Error
	for _, row := range rows {
		for _, part := range parts(c, row.Class, row.MadeBy) {
			part.Spend(moment(row.Day*dayMicros), quota.Spend{Cost: gpu.MicroUSD(row.Cost)})
		}
	}
	return err
}

// parts returns the sums that a reservation belongs to.
func parts(c *ledger.Commitments, class, madeBy string) []*quota.Commitments {
	if c.ByKey[madeBy] == nil {
		c.ByKey[madeBy] = &quota.Commitments{}
	}
	sums := []*quota.Commitments{&c.All, c.ByKey[madeBy]}
	if reservation.Class(class) == reservation.Speculative {
		sums = append(sums, &c.Guessed)
	}
	return sums
}
