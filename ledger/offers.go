package ledger

import (
	"time"
)

// Offer is one kind of machine that a provisioner says it can make.
type Offer struct {
	Region    string
	Type      string
	Model     string // empty: it does not say
	GPUs      int    // of one machine
	MemoryMiB int    // of one GPU; 0: it does not say
}

// Provisioner is what a worker has reported of one that it is configured with.
type Provisioner struct {
	Name       string
	Offers     []Offer
	ReportedAt time.Time
}
