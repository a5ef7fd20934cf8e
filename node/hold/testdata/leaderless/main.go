// Command leaderless ends its first thread, and goes on with others.
package main

import (
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

func init() { runtime.LockOSThread() } // main is on the first thread

func main() {
	signal.Ignore(syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		for {
			time.Sleep(time.Second)
		}
	}()
	_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT, 0, 0, 0)
}
