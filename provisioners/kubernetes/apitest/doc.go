// Package apitest is an API server without a cluster: it keeps objects as
// kube-apiserver does, over the same JSON on HTTP, and does nothing by itself.
//
// It has what the safety of an adapter depends on: names that are taken, uids,
// preconditions, resource versions that conflict, pods that end gracefully,
// pages, and refusals as the real one words them. It has no authentication and
// validates nothing else. Faults hit the requests of the user agent "forewarm"
// only, so that a test can play scheduler and kubelet over the same wire.
package apitest
