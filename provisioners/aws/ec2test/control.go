package ec2test

import (
	"slices"
	"time"
)

// Schedule announces an event for a machine.
func (r *Region) Schedule(id, code, description string, notBefore time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, scheduled{id: id, code: code, description: description, notBefore: notBefore})
}

// Reclaim announces the end of a spot machine, two minutes before it. The status
// of its request is what EC2 documents for machines that are terminated and not
// stopped: the end, at once, while the machine still runs. Any other code can be
// given.
func (r *Region) Reclaim(id string, code ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.advanceMachines()
	m := r.byID[id]
	if m == nil || m.market != "spot" || !m.stop.IsZero() || !m.reclaim.IsZero() {
		return
	}
	m.reclaim, m.spot = now, "instance-terminated-no-capacity"
	if len(code) > 0 {
		m.spot = code[0]
	}
}

// SetGPUs changes what the machine's driver reports.
func (r *Region) SetGPUs(id string, change func([]GPU) []GPU) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m := r.byID[id]; m != nil {
		m.gpus = change(slices.Clone(m.gpus))
	}
}

// SetBusy says whether something computes on the machine's GPUs.
func (r *Region) SetBusy(id string, busy bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.advanceMachines()
	if m := r.byID[id]; m != nil {
		m.busy, m.idle = busy, now
	}
}
