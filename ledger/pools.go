package ledger

import (
	"time"
)

// Bounds of a pool.
const (
	MaxNodes   = 100_000
	MaxPerNode = 1024
	MaxShares  = 64 // of one GPU
	MaxTimer   = 366 * 24 * time.Hour
)

// Reasons of an operator's quarantine.
const (
	ReasonUnhealthyGPU = "gpu_unhealthy"  // the node's daemon found what speaks against a GPU
	ReasonOldDriver    = "driver_too_old" // the pool asks for a newer one
	ReasonNotClean     = "not_clean"      // something of an earlier holder may be left on the node
	ReasonInspection   = "inspection"     // an operator keeps the node
	ReasonForgotten    = "forgotten"      // for so long that somebody is told
)

// ReasonOverOnNode is why an allocation ended that a node's daemon does not let in again.
const ReasonOverOnNode = "over_on_node"

// Offer is one kind of machine that a provisioner says it can make.
type Offer struct {
	Region    string
	Type      string
	Model     string // empty: it does not say
	GPUs      int    // of one machine
	MemoryMiB int    // of one GPU; 0: it does not say
	Simulated bool   // no real machine stands behind it
	Observed  bool   // a cluster's own scheduler places the work there
}

// Provisioner is what a worker has reported of one that it is configured with.
type Provisioner struct {
	Name       string
	Offers     []Offer
	ReportedAt time.Time
}

// Notice is what a provider announced of a machine.
type Notice struct {
	Kind    string    // a code: interruption, expiring, degraded
	At      time.Time // when it comes true; zero where the provider does not say
	Message string    // the provider's own words
}

// Text tells of the notice in a sentence.
func (n Notice) Text() string {
	when := "at a time that its provider does not say"
	if !n.At.IsZero() {
		when = "at " + FormatTime(n.At)
	}
	switch n.Kind {
	case "interruption":
		return "its provider takes it back " + when
	case "expiring":
		return "the supply that it belongs to ends " + when
	default:
		return "its provider says that it is failing"
	}
}
