// Package booking has the verbs that book: reservations, schedules, allocations
// and an agent's demand; and finds free capacity.
package booking

import (
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// Booking is the verbs of reservations, schedules, allocations and what an agent asks for.
type Booking struct{ *txn.Engine }
