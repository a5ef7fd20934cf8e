//go:build linux

package bpf

// Retry is retry.
var Retry = retry
