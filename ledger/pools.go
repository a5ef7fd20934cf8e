package ledger

import (
	"time"
)

// Bounds of a pool.
const (
	MaxNodes   = 100_000
	MaxPerNode = 1024
	MaxTimer   = 366 * 24 * time.Hour
)
