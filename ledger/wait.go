package ledger

import "time"

// Wait is how much longer something waits: an interval, never a single number.
// Basis says what it was estimated from, Samples how many observations that was.
type Wait struct {
	P10, P50, P90 time.Duration
	Basis         string
	Samples       int
}
