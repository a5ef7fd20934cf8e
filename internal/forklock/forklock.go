// Package forklock keeps the writing of programs and the choice of ports apart
// from the start of child processes. Between its fork and its exec a child
// holds a copy of every open file of its parent, whatever is marked to be
// closed on exec: a program that was written and closed is still "busy"
// (go.dev/issue/22315), a port that was released is still taken. Tests, which
// write programs and look for ports while other tests start processes, do both
// here.
package forklock

import (
	"context"
	"net"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
)

// WriteProgram writes text to an executable file that may be run at once.
func WriteProgram(path, text string) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, []byte(text), 0o700) //nolint:gosec // a program is executable
}

// Ports are handed out below those of outgoing connections, one of which could
// take a port while its process is dead. Each process begins at ports of its own.
const lowest, ports, perProcess = 20_000, 12_288, 64

var handed atomic.Int64

// FreePort returns a port of 127.0.0.1 that nothing listens on. It is not handed
// out again by this process before 12,288 others were.
func FreePort() int {
	for {
		port := lowest + (os.Getpid()*perProcess+int(handed.Add(1)))%ports
		if isFree(port) {
			return port
		}
	}
}

func isFree(port int) bool {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", address)
	if err != nil {
		return false
	}
	return l.Close() == nil
}
