package ec2test

import (
	"slices"
	"time"
)

// Effect is what a fault does to a call.
type Effect string

// The effects.
const (
	// Refuse does nothing and answers Fault.Code.
	Refuse Effect = "refuse"
	// Lose does nothing and cuts the connection.
	Lose Effect = "lose"
	// LoseAnswer does what was asked and cuts the connection.
	LoseAnswer Effect = "lose_answer"
	// Ignore answers as if a machine were ending, and lets it live.
	// TerminateInstances.
	Ignore Effect = "ignore"
	// Garble leaves out the id of the last row. DescribeInstances.
	Garble Effect = "garble"
	// Loop answers pages that never end. DescribeInstances.
	Loop Effect = "loop"
	// Empty answers no row for an id that exists, which EC2 has done.
	// DescribeInstances.
	Empty Effect = "empty"
	// Untagged answers without the tags, as EC2 does to a repeated token.
	// RunInstances.
	Untagged Effect = "untagged"
)

// Fault hits the next Times calls of Action; an empty Action is any. The first
// fault that was injected and fits a call is used up first.
type Fault struct {
	Action string
	Effect Effect
	Times  int // 0 is once
	// Code, Message, Status and RetryAfter shape the answer of Refuse; a Status
	// of 0 is the one that EC2 gives the code.
	Code, Message string
	Status        int
	RetryAfter    time.Duration
}

// Inject queues a fault.
func (r *Region) Inject(fault Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fault.Times = max(1, fault.Times)
	r.faults = append(r.faults, fault)
}

// Mend forgets all faults that have not hit yet.
func (r *Region) Mend() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults = nil
}

func (r *Region) nextFault(action string) Fault {
	i := slices.IndexFunc(r.faults, func(f Fault) bool { return f.Action == "" || f.Action == action })
	if i < 0 {
		return Fault{}
	}
	fault := r.faults[i]
	if r.faults[i].Times--; r.faults[i].Times == 0 {
		r.faults = slices.Delete(r.faults, i, i+1)
	}
	return fault
}

// SetLag changes Config.Lag and Config.TagLag from now on.
func (r *Region) SetLag(describe, tags time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.config.Lag, r.config.TagLag = describe, tags
}

// SetStock sets how many machines of the type the zone can have at once.
func (r *Region) SetStock(zone, kind string, machines int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stock[[2]string{zone, kind}] = machines
}

// SellOut leaves nothing in any zone.
func (r *Region) SellOut() {
	for _, zone := range r.config.Zones {
		for _, kind := range r.config.Types {
			r.SetStock(zone, kind.Name, 0)
		}
	}
}

// Calls returns how often the action was called.
func (r *Region) Calls(action string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.calls[action]
}
