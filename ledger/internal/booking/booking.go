// Package booking is the verbs that book: reservations, schedules, allocations and
// what an agent asks for; and what is free.
package booking

import (
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// Booking is the verbs of reservations, schedules, allocations and what an agent asks for.
type Booking struct{ *txn.Engine }
