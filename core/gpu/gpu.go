// Package gpu holds the nouns that every other package needs: money, the shape
// of a request for GPUs, pools of capacity, and devices.
package gpu

import (
	"fmt"
	"math"
	"math/bits"
	"time"
)

// MicroUSD is an amount of money in millionths of a US dollar. Money is never a
// float.
type MicroUSD int64

// USD is one US dollar.
const USD MicroUSD = 1_000_000

// parts splits the amount into its sign and its size.
func (m MicroUSD) parts() (sign string, size uint64) {
	if m < 0 {
		return "-", -uint64(m)
	}
	return "", uint64(m)
}

// String renders the amount with cents, rounded half away from zero.
func (m MicroUSD) String() string {
	sign, size := m.parts()
	cents := (size + 5_000) / 10_000
	return fmt.Sprintf("%s$%d.%02d", sign, cents/100, cents%100)
}

// Decimal renders the amount as a plain decimal string with six places, the
// exact form used on the wire.
func (m MicroUSD) Decimal() string {
	sign, size := m.parts()
	return fmt.Sprintf("%s%d.%06d", sign, size/uint64(USD), size%uint64(USD))
}

// For returns the cost of using something priced m per hour for d, rounded to
// the nearest micro-dollar, half away from zero. The product is formed in 128
// bits: a thousand GPUs for an hour would not fit in 64. What no MicroUSD can
// hold becomes the largest one. d must not be negative.
func (m MicroUSD) For(d time.Duration) MicroUSD {
	sign, size := m.parts()
	hi, lo := bits.Mul64(size, uint64(max(d, 0)))
	lo, carry := bits.Add64(lo, uint64(time.Hour)/2, 0)
	hi += carry
	cost := uint64(math.MaxInt64)
	if hi < uint64(time.Hour) {
		quotient, _ := bits.Div64(hi, lo, uint64(time.Hour))
		cost = min(cost, quotient)
	}
	if sign != "" {
		return -MicroUSD(cost)
	}
	return MicroUSD(cost)
}

// Timers are a pool's waiting times. None may be negative.
type Timers struct {
	WarmHold    time.Duration // a ready reservation is kept this long for its owner, then it is a no-show
	IdleRelease time.Duration // an unneeded warm node is kept this long before it is deprovisioned
	MaxLease    time.Duration // the longest lease of an allocation and the longest window of a reservation
	Cleaning    time.Duration // kept free on a slot between the end of one booking and the start of the next
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
	PerNode     int    // GPUs on one node
	MemoryMiB   int    // memory of one GPU
	Price       MicroUSD
	MinBilling  time.Duration // the shortest time that its provider charges
	// Alternates are where else its machines can be had: the same GPUs, from
	// another zone, type or provider.
	Alternates []Alternate
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
}

// Device is one GPU of a node as its provisioner or node daemon reported it.
type Device struct {
	UUID      string
	Index     int
	Model     string
	MemoryMiB int
}
