package audit

import (
	"slices"
	"strings"
	"time"

	"github.com/forewarm/forewarm/core/capacity"
)

// Sharing is what the ledger knows of GPUs that several have at once. The zero value: there are none.
type Sharing struct {
	PerGPU  map[string]int       // how many may have a GPU, by its UUID
	Cleaned map[string]time.Time // when allocations were proved to have left nothing
}

// Sharing returns what of that is in the rows, which must have their history.
func (r Rows) Sharing() Sharing {
	s := Sharing{PerGPU: map[string]int{}, Cleaned: r.Cleaned}
	for _, n := range r.Nodes {
		for _, d := range n.Devices {
			if gpu := capacity.GPUOf(d.UUID); gpu != d.UUID {
				s.PerGPU[gpu]++
			}
		}
	}
	return s
}

// lookTakes is how much later than it is there something may be written down.
const lookTakes = 2 * time.Second

// may reports whether a mark of another allocation may be there: that shares the GPU, and is not proved clean yet.
func (s Sharing) may(u Use) bool {
	if !slices.ContainsFunc(u.GPUs, func(gpu string) bool { return s.PerGPU[gpu] > 1 }) {
		return false
	}
	at, over := s.Cleaned[u.Mark[strings.LastIndexAny(u.Mark, ".:")+1:]]
	return !over || u.At.Before(at.Add(lookTakes))
}
