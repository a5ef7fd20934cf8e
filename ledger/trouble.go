package ledger

import (
	"slices"
	"time"
)

// TroubleAfter is how many failures in a row make a trouble: fewer pass every day.
const TroubleAfter = 3

// Trouble is work at a provider that fails again and again, and is tried again for
// ever.
type Trouble struct {
	Kind    string // of its task, or TroubleBoot
	Subject string // a node, a provisioner by name, or a pool by id
	Count   int    // failures in a row
	At      time.Time
	Message string // of the last failure; for operators
}

// TroubleBoot is the kind of a trouble with nodes of an observed pool that did not boot: Count
// of them, lately.
const TroubleBoot = "boot"

// ofProvisioner reports whether the trouble is of a provisioner, and not of a node.
func (t Trouble) ofProvisioner() bool {
	return t.Kind == TaskSweep || t.Kind == TaskObserve || t.Kind == TaskKeep
}

// Troubles is all that fails again and again, what failed most first.
type Troubles []Trouble

// Of returns the trouble with a node, nil if there is none.
func (t Troubles) Of(nodeID string) *Trouble {
	return t.firstTrouble(func(x Trouble) bool { return !x.ofProvisioner() && x.Subject == nodeID })
}

// In returns the worst trouble of a pool: with one of its nodes, with listing the machines
// of one of its provisioners, or with nodes that did not boot. Nil if there is none.
func (t Troubles) In(s PoolState) *Trouble {
	ids := map[string]bool{}
	for _, n := range s.Nodes {
		ids[n.ID] = true
	}
	return t.firstTrouble(func(x Trouble) bool {
		if x.ofProvisioner() {
			return UsesProvisioner(s.Pool, x.Subject)
		}
		return ids[x.Subject] || x.Kind == TroubleBoot && x.Subject == s.Pool.ID
	})
}

func (t Troubles) firstTrouble(is func(Trouble) bool) *Trouble {
	if i := slices.IndexFunc(t, is); i >= 0 {
		return &t[i]
	}
	return nil
}
