//go:build linux && cgo

package gpu

// ParseCapabilities finds the devices of a MIG device in the driver's list.
var ParseCapabilities = parseCapabilities
