// Package forewarmv1 is generated from node.proto: what the daemon of a node and the control
// plane say to each other in streams.
package forewarmv1
