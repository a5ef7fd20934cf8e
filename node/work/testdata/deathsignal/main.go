// Command deathsignal prints which signal the kernel sends it when its parent ends.
package main

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

func init() { runtime.LockOSThread() } // the signal is one of the first thread's

func main() {
	var signal int32
	err := unix.Prctl(unix.PR_GET_PDEATHSIG, uintptr(unsafe.Pointer(&signal)), 0, 0, 0)
	fmt.Println(unix.SignalName(unix.Signal(signal)), err)
}
