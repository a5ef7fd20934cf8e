package ledger

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/node"
)

// Instance is what a provider said of a machine, in plain values.
type Instance struct {
	ProviderID string
	Address    string
	Devices    []capacity.Device
	Simulated  bool
	// Born and Ended are the provider's own times, by which it charges; zero
	// where it does not say.
	Born, Ended time.Time
	// Endless says that its provider gives machines no dead-man switch: it never
	// ends by itself.
	Endless bool
	// CheckWithin is how soon it should be looked at again; zero: as configured.
	CheckWithin time.Duration
}

// Loss is what is known of a machine that is gone without having been removed.
type Loss struct {
	Preempted bool      // its provider took it back for somebody else
	Ended     time.Time // until when the provider charges; zero where it does not say
	// Why is what an operator must know of it, in the provider's words; empty for nothing.
	Why string
}

// CreateIntent is a committed decision to make a machine: Node.Token is stored,
// so the call that follows may be repeated for ever.
type CreateIntent struct {
	Node   node.Node
	Pool   Pool
	Wanted bool // false: there is nothing to do, and the task is finished
}

// NodeChange is what an operator changes of a node. Nil fields stay as they are.
type NodeChange struct {
	Labels map[string]string // all that it has then
	Taints []string          // all that it has then
}

// Check returns *InvalidError for a change that no node can have, and sorts its taints.
func (c *NodeChange) Check() error {
	if len(c.Labels) > node.MostLabels {
		return &InvalidError{Field: "labels", Rule: fmt.Sprintf("must be at most %d", node.MostLabels)}
	}
	for _, key := range slices.Sorted(maps.Keys(c.Labels)) {
		if !node.IsWord(key) || !node.IsLabelValue(c.Labels[key]) {
			return &InvalidError{Field: "labels", Rule: fmt.Sprintf("%q: %s", ClipText(key+"="+c.Labels[key], 140), wordRule),
				Fix: "write it as in disk=nvme"}
		}
	}
	if c.Taints == nil {
		return nil
	}
	c.Taints = slices.Clone(c.Taints)
	slices.Sort(c.Taints)
	c.Taints = slices.Compact(c.Taints)
	if len(c.Taints) > node.MostTaints {
		return &InvalidError{Field: "taints", Rule: fmt.Sprintf("must be at most %d", node.MostTaints)}
	}
	for _, word := range c.Taints {
		if !node.IsWord(word) {
			return &InvalidError{Field: "taints", Rule: fmt.Sprintf("%q: %s", ClipText(word, 70), wordRule),
				Fix: "write a word, as in licensed"}
		}
	}
	return nil
}

// wordRule says what node.IsWord does.
const wordRule = "must have at most 63 letters, digits and -_./ on each side, and begin with a letter or a digit"

// ApplyTo is a node with a change.
func (c *NodeChange) ApplyTo(n node.Node) node.Node {
	if c.Labels != nil {
		n.Labels = maps.Clone(c.Labels)
	}
	if c.Taints != nil {
		n.Taints = slices.Clone(c.Taints)
	}
	if len(n.Labels) == 0 {
		n.Labels = nil
	}
	if len(n.Taints) == 0 {
		n.Taints = nil
	}
	return n
}
