package hold

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// ipcKinds are the lists of System V's objects, with the call that removes one.
var ipcKinds = []struct {
	list   string
	remove func(id int) error
}{
	{"/proc/sysvipc/shm", func(id int) error { return control(unix.SYS_SHMCTL, id, unix.IPC_RMID, 0) }},
	{"/proc/sysvipc/msg", func(id int) error { return control(unix.SYS_MSGCTL, id, unix.IPC_RMID, 0) }},
	{"/proc/sysvipc/sem", func(id int) error { return control(unix.SYS_SEMCTL, id, 0, unix.IPC_RMID) }},
}

func control(call uintptr, id, second, third int) error {
	if _, _, errno := unix.Syscall(call, uintptr(id), uintptr(second), uintptr(third)); errno != 0 {
		return errno
	}
	return nil
}

// removeIPC removes the objects of System V that a user owns or made.
func removeIPC(uid uint32) (removed int, err error) {
	for _, kind := range ipcKinds {
		for _, id := range ownedIPC(kind.list, uid) {
			if err := kind.remove(id); err != nil && !errors.Is(err, syscall.EINVAL) {
				return removed, fmt.Errorf("removing an object of %s: %w", kind.list, err)
			}
			removed++
		}
	}
	return removed, nil
}

// ownedIPC are the ids in a list of System V's objects that a user owns or made.
func ownedIPC(list string, uid uint32) (ids []int) {
	text, err := os.ReadFile(list) //nolint:gosec // one of three
	if err != nil {
		return nil // the kernel has none
	}
	lines := strings.Split(string(text), "\n")
	columns := map[string]int{}
	for i, name := range strings.Fields(lines[0]) {
		columns[name] = i
	}
	idColumn := 1 // after the key
	want := strconv.FormatUint(uint64(uid), 10)
	for _, line := range lines[1:] {
		f := strings.Fields(line)
		if len(f) <= max(columns["uid"], columns["cuid"]) || f[columns["uid"]] != want && f[columns["cuid"]] != want {
			continue
		}
		if id, err := strconv.Atoi(f[idColumn]); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}
