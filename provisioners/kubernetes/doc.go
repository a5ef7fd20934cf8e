// Package kubernetes holds nodes of a cluster by placeholder pods (Cluster), or keeps
// them warm for the cluster's own users and watches who uses them (Observed).
//
// A machine is two objects in one namespace. The placeholder pod asks for the
// node's GPUs, at a priority below all real work, so that the cluster's own
// autoscaler boots a node for it and real pods take its place. The record, a
// ConfigMap of the same name, is written before the pod and outlives it: it is
// the one object in which a token's life is decided, by compare and swap.
//
// The record is why no finalizer is needed. A finalizer would keep the name of a
// deleted pod taken as well, but it makes `kubectl drain` wait for a control
// plane that may be dead. A pod can vanish at any time (evicted, preempted, node
// gone) and nothing is forgotten: its record says that it was there, so a late
// duplicate of its Create finds a machine that has ended.
//
// It is built with the tag clouds only.
package kubernetes
