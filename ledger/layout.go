package ledger

import (
	"fmt"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/phrase"
)

// LayOut checks how many GPUs a request names and how they are to lie on nodes,
// and returns their number, which the layout may give.
func LayOut(gpus int, l capacity.Layout) (int, error) {
	switch {
	case l.Nodes < 0 || l.Nodes > MaxGPUs:
		return 0, &InvalidError{Field: "nodes", Rule: fmt.Sprintf("must be between 1 and %d", MaxGPUs)}
	case l.PerNode < 0 || l.PerNode > MaxPerNode:
		return 0, &InvalidError{Field: "gpus_per_node", Rule: fmt.Sprintf("must be between 1 and %d", MaxPerNode)}
	}
	if gpus == 0 {
		gpus = l.Nodes * l.PerNode
	}
	if gpus == 0 {
		return 0, &InvalidError{Field: "gpus", Rule: "must be given, and be at least 1",
			Fix: "say how many GPUs, or on how many nodes and how many on each"}
	}
	if gpus < 1 || gpus > MaxGPUs {
		return 0, &InvalidError{Field: "gpus", Rule: fmt.Sprintf("must be between 1 and %d", MaxGPUs)}
	}
	if _, ok := l.Shape(gpus, MaxPerNode); ok {
		return gpus, nil
	}
	if _, ok := (capacity.Layout{Nodes: l.Nodes, PerNode: l.PerNode}).Shape(gpus, MaxPerNode); ok {
		return 0, &InvalidError{Field: "spread", Rule: fmt.Sprintf("does not work out: %s cannot be divided evenly",
			describeLayout(gpus, l)),
			Fix: "leave spread out, and the last node has fewer, or name a number of GPUs that can be divided"}
	}
	return 0, &InvalidError{Field: "nodes",
		Rule: fmt.Sprintf("contradicts gpus: %s is impossible, because only the last node may have fewer",
			describeLayout(gpus, l)),
		Fix: "leave out gpus, nodes or gpus_per_node: two of them give the third"}
}

// describeLayout says what a layout was asked for.
func describeLayout(gpus int, l capacity.Layout) string {
	text := phrase.Count(gpus, "GPU")
	if l.Nodes > 0 {
		text += " on " + phrase.Count(l.Nodes, "node")
	}
	if l.PerNode > 0 {
		text += fmt.Sprintf(" with %d each", l.PerNode)
	}
	return text
}
