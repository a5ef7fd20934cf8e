//go:build !linux

package top

import "io"

// readKeys leaves a terminal as it is: keys come with Enter.
func readKeys(io.Reader) (restore func()) { return func() {} }
