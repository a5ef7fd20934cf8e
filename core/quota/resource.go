package quota

import (
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
)

// Resource is what a limit counts.
type Resource int

// The resources, as the dimensions of a Vector.
const (
	GPUs Resource = iota
	GPUMemoryMiB
	CPUs
	MemoryMiB
	Bookings
	resources
)

// String is the resource's name on the wire and in tables.
func (r Resource) String() string {
	return [resources]string{"gpus", "gpu_memory_mib", "cpus", "memory_mib", "bookings"}[r]
}

// Vector is an amount of each Resource.
type Vector = calendar.Vector

// Every Resource is a dimension of a Vector, and there are no others.
var _ = Vector([resources]int64{})

// Bounds is a limit for each Resource.
type Bounds [resources]Limit

// Demand is what a shape takes of a pool while it is held: its GPUs and their
// memory, its nodes' CPUs and memory in the proportion of their GPUs, each
// node's share rounded up, and one booking. A shape without GPUs takes nothing.
func Demand(p capacity.Pool, s capacity.Shape) Vector {
	n := int64(s.GPUs())
	if n <= 0 || s.Nodes < 0 {
		return Vector{}
	}
	return Vector{
		GPUs: n, GPUMemoryMiB: n * int64(p.MemoryMiB), Bookings: 1,
		CPUs: nodeShare(p.NodeCPUs, p, s), MemoryMiB: nodeShare(p.NodeMemoryMiB, p, s),
	}
}

func nodeShare(ofNode int, p capacity.Pool, s capacity.Shape) int64 {
	if p.PerNode <= 0 {
		return 0
	}
	share := func(gpus int) int64 { return (int64(ofNode)*int64(gpus) + int64(p.PerNode) - 1) / int64(p.PerNode) }
	return share(s.PerNode)*int64(s.Full()) + share(s.Least())*int64(s.Nodes-s.Full())
}
