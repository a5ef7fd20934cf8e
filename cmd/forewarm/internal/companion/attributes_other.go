//go:build !linux

package companion

import "syscall"

// attributes are none: the daemon runs on Linux alone.
func attributes() *syscall.SysProcAttr { return nil }
