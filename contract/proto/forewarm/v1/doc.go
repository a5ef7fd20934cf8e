// Package forewarmv1 is generated from node.proto, what the daemon of a node and the control
// plane say to each other in streams, and from task.proto, what programs that run workflows and
// the control plane do.
package forewarmv1
