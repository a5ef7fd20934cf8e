package hold

import (
	"errors"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// The bounds of how many processes and threads a hold has at most.
const (
	fewestProcesses = 1024
	mostProcesses   = 65536
)

// boundWork bounds the processes and threads of each user that this one starts work as,
// to a quarter of what the machine takes: one holder's mistake must not stop all others. The
// kernel counts by user and exempts root, so that the daemon itself goes on.
func boundWork() error {
	most := uint64(mostProcesses)
	for _, file := range []string{"/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max"} {
		text, err := os.ReadFile(file) //nolint:gosec // one of two
		if err != nil {
			continue
		}
		if n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err == nil {
			most = min(most, max(n/4, fewestProcesses))
		}
	}
	var now unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &now); err != nil {
		return err
	}
	most = min(most, now.Max)
	if err := unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: most, Max: most}); err != nil {
		return err
	}
	return errors.Join(unboundPinning(), forbidHiddenQueues())
}

// unboundPinning lets work pin as much memory as it has, which RDMA does with its buffers: the bound of its memory
// counts that, too. A daemon that may not raise the limit leaves it as high as it may be.
func unboundPinning() error {
	if unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}) == nil {
		return nil
	}
	var now unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &now); err != nil {
		return err
	}
	return unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: now.Max, Max: now.Max})
}

// queueFolder is where POSIX message queues are files.
const queueFolder = "/dev/mqueue"

// forbidHiddenQueues keeps holders from making POSIX message queues where these are no files,
// which nobody could find again.
func forbidHiddenQueues() error {
	var found unix.Statfs_t
	const magic = 0x19800202 // MQUEUE_MAGIC of the kernel
	if unix.Statfs(queueFolder, &found) == nil && found.Type == magic {
		return nil
	}
	return unix.Setrlimit(unix.RLIMIT_MSGQUEUE, &unix.Rlimit{})
}
