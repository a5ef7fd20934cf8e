package agent

import (
	"maps"
	"slices"
)

// maxOthers is how many other tenants are remembered, to be named.
const maxOthers = 8

// noteTenant remembers the tenant of a row that does not count.
func (a *Agent) noteTenant(name string) {
	if name != "" && len(a.others) < maxOthers {
		a.others[name] = true
	}
}

// HasTenant reports whether a job of the tenant that counts was ever seen, and names some of the others that were,
// sorted. An agent that counts all has its tenant.
func (a *Agent) HasTenant() (has bool, others []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.cfg.Tenant == "" || a.cfg.Predict.Knows(a.cfg.Tenant), slices.Sorted(maps.Keys(a.others))
}
