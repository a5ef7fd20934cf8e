package companion

import "syscall"

// attributes keep a terminal's Ctrl-C from the daemon, and have the kernel end it with this
// process, however that ends.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
