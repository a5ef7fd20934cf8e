package ledger

import (
	"time"

	"github.com/forewarm/forewarm/core/capacity"
)

// DefaultLease is the lease of an allocation that names none.
const DefaultLease = time.Hour

// AllocateRequest asks for GPUs now.
type AllocateRequest struct {
	// Pool is an id or a name; empty: one of Model that meets Needs and can serve, warm
	// ones first, then the cheapest.
	Pool  string
	Model string
	Needs capacity.Needs
	GPUs  int // 0: those of Layout
	// Layout is how they are to lie on nodes; zero: on as few as can be.
	Layout capacity.Layout
	Lease  time.Duration // counts from activation; zero means DefaultLease
	Name   string
	// Workload is what it is for; empty: online.
	Workload capacity.Workload
	// Waited is for how long its holder has asked for it already, and was refused for want of room,
	// as the holder counts: part of the allocation's wait, and of no decision.
	Waited time.Duration
}

// maxWaited is the longest time that somebody may have asked for an allocation.
const maxWaited = 30 * 24 * time.Hour

// Check returns *InvalidError for a request that nobody could serve, and fills
// in its GPUs.
func (r *AllocateRequest) Check() (err error) {
	if r.GPUs, err = LayOut(r.GPUs, r.Layout); err != nil {
		return err
	}
	if r.Lease < 0 || (r.Lease > 0 && r.Lease < time.Second) {
		return &InvalidError{Field: "lease_seconds", Rule: "must be at least 1 s"}
	}
	if r.Waited < 0 || r.Waited > maxWaited {
		return &InvalidError{Field: "waited_seconds", Rule: "must be from 0 to 2592000, which is 30 days"}
	}
	return nil
}

// PoolNeeds is what the request needs of a pool.
func (r AllocateRequest) PoolNeeds() PoolNeeds {
	return PoolNeeds{Pool: r.Pool, model: r.Model, needs: r.Needs}
}

// LockHint names what the request will lock, if it names it.
func (r AllocateRequest) LockHint() *LockHint {
	if r.Pool == "" {
		return nil
	}
	return &LockHint{Pool: r.Pool}
}
