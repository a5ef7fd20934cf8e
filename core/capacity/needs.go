package capacity

// Needs is what a request asks of the machines that serve it, beside their model.
// What is zero asks nothing.
type Needs struct {
	Region        string // that of the pool
	MemoryMiB     int    // at least so much on each GPU
	NodeMemoryMiB int    // at least so much on each node; a pool that does not say has none
}

// Need is one of the things that Needs can ask for.
type Need string

// What can be needed.
const (
	NeedRegion     Need = "region"
	NeedMemory     Need = "memory"
	NeedNodeMemory Need = "node memory"
)

// Unmet returns the first need that the pool does not meet, or "".
func (n Needs) Unmet(p Pool) Need {
	switch {
	case n.Region != "" && n.Region != p.Region:
		return NeedRegion
	case n.MemoryMiB > p.MemoryMiB:
		return NeedMemory
	case n.NodeMemoryMiB > p.NodeMemoryMiB:
		return NeedNodeMemory
	default:
		return ""
	}
}
