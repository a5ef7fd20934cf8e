package report

import (
	"time"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/node/container"
)

// Holds are what runs here for holders of allocations.
type Holds interface {
	// Isolation says how well the node keeps them apart.
	Isolation() string
	// Unbounded says why the memory and the processors of what runs here are not bounded; empty: they are.
	Unbounded() string
	// Runtime is what runs containers here; the zero value: nothing does.
	Runtime() container.Runtime
	// List returns the allocations that have a place here.
	List() []string
	// GPUs are those that they have, or had until they ended.
	GPUs() []string
	// Cleaned is what there is to tell of those that have ended.
	Cleaned() []contract.Cleaned
	// End ends those that the server names, and forgets what it names no more.
	End(ids []string)
	// Look reads from a look, begun at a time, whether the GPUs of what has ended are free.
	Look(look contract.NodeLook, at time.Time)
	// AwaitsLook reports whether an end waits for a look.
	AwaitsLook() bool
	// EndAll ends all, and returns when nothing runs any more.
	EndAll()
}

// endHolds ends what runs here once nobody stands for it any more.
func (r *Reporter) endHolds() {
	if r.Holds != nil {
		r.Holds.EndAll()
	}
}

// held are the GPUs that somebody has here, or has just left.
func (r *Reporter) held() []string {
	if r.Holds == nil {
		return nil
	}
	return r.Holds.GPUs()
}
