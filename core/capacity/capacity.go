// Package capacity holds the nouns that every other package needs: pools of GPU
// nodes and the offerings they come from, the shape of a request for GPUs, what a
// request needs of a pool, and devices.
package capacity

import (
	"time"

	"github.com/forewarm/forewarm/core/money"
)

// Timers are a pool's waiting times. None may be negative.
type Timers struct {
	WarmHold    time.Duration // a ready reservation is kept this long for its owner, then it is a no-show
	IdleRelease time.Duration // an unneeded warm node is kept this long before it is deprovisioned
	MaxLease    time.Duration // the longest lease of an allocation and the longest window of a reservation
	Cleaning    time.Duration // kept free on a slot between the end of one booking and the start of the next
	// IdleWarn is how long the GPUs of an allocation do nothing until its holder is warned, and
	// IdleReclaim how long until it is ended, which is longer; 0: that does not happen.
	IdleWarn, IdleReclaim time.Duration
}

// Workload is what GPUs are for; a pool may keep a share of itself for each.
type Workload string

// The workloads.
const (
	Online Workload = "online" // somebody waits for each answer
	Batch  Workload = "batch"  // throughput counts
)

// Pool is one kind of capacity: up to MaxNodes machines of one type that one
// provisioner makes.
type Pool struct {
	ID          string
	Name        string
	Provisioner string // name of a configured provisioner
	Region      string
	Type        string // the provisioner's name for the machine type
	Model       string // GPU model, for example "a100-80g"
	PerNode     int    // GPUs on one node; shares of them, where they are shared
	MemoryMiB   int    // memory of one of them
	// SharesPerGPU is how many bookings may have one GPU at once, each a share of its memory and none of them kept
	// from taking more; 0 and 1: each GPU has one holder. Everything else counts shares as GPUs.
	SharesPerGPU int
	Price        money.MicroUSD
	MinBilling   time.Duration // the shortest time that its provider charges
	// Alternates are where else its machines can be had: the same GPUs, from
	// another zone, type or provider.
	Alternates []Alternate
	// MinDriver is the oldest driver with which a node is used, as its daemon tells it; empty: any.
	MinDriver Driver
	// NodeCPUs and NodeMemoryMiB are those of a whole node; 0 when not known, and
	// then a request counts none.
	NodeCPUs      int
	NodeMemoryMiB int
	// OnlineShare is the part of the GPUs, in thousandths, that is for online
	// work; the rest is for batch. 0 means that the pool is not split.
	OnlineShare int
	BorrowIdle  bool // a workload may use what the other leaves free
	MinNodes    int  // kept warm at all times
	MaxNodes    int  // slots: never more machines than this exist at once
	Timers      Timers
	// MaxCreates is how many nodes may be asked for in CreateWindow that have not
	// served anybody; 0 of either is the planner's default.
	MaxCreates   int
	CreateWindow time.Duration
	Paused       bool // speculative pre-warming is switched off
	Simulated    bool // the machines are not real; shown as SIM wherever the pool is
	// Observed pools are parts of a cluster whose own scheduler places the work: nodes
	// are kept warm there ahead of need, and who uses them is watched. In other pools
	// Forewarm hands out the devices.
	Observed bool
	Holders  Holders // of an observed pool
	// DevicesOnly pools tell a holder the indices and UUIDs of its GPUs, and neither
	// where they are nor a way in.
	DevicesOnly bool
	// Isolation is how well a node must keep holders apart for work of two organizations to
	// be on it at once; empty: IsolationUser.
	Isolation Isolation
	// Labels and Taints are those of all its nodes, also of such as are not made yet.
	Labels map[string]string
	Taints []string
}

// Device is one GPU of a node as its provisioner or node daemon reported it, or a share of one: see [Pool.Units].
type Device struct {
	UUID      string
	Index     int // of the GPU
	Model     string
	MemoryMiB int
}
