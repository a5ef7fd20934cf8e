package hold_test

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/forewarm/forewarm/internal/leaktest"
)

func TestMain(m *testing.M) {
	if life, ok := os.LookupEnv(killedAt); ok {
		f := strings.Fields(life)
		panic(live(f[0], f[1], f[2], f[3]))
	}
	dropSysAdmin()
	leaktest.VerifyTestMain(m)
}

// dropSysAdmin takes CAP_SYS_ADMIN from the tests, which the daemon's unit does not have. With cgo it is not possible.
func dropSysAdmin() {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData // of 32 capabilities each
	if err := unix.Capget(&header, &sets[0]); err != nil {
		panic(err)
	}
	sets[0].Effective &^= 1 << unix.CAP_SYS_ADMIN
	sets[0].Permitted &^= 1 << unix.CAP_SYS_ADMIN
	_, _, errno := syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)),
		uintptr(unsafe.Pointer(&sets[0])), 0)
	if errno != 0 && errno != syscall.ENOTSUP {
		panic(errno)
	}
}
