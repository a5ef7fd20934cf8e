package hold

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

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

// removeIPC removes the objects of System V that users own or made, and reads back that they are gone.
func removeIPC(isOver func(uid uint32) bool) (removed int, err error) {
	for _, kind := range ipcKinds {
		found := ownedIPC(kind.list, isOver)
		for _, o := range found { // root would need CAP_SYS_ADMIN
			err := asUser(sameUser, o.user, func() error { return kind.remove(o.id) })
			if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EIDRM) {
				return removed, fmt.Errorf("removing an object of %s: %w", kind.list, err)
			}
			removed++
		}
		if len(found) == 0 {
			continue
		}
		if left := ownedIPC(kind.list, isOver); len(left) > 0 {
			return removed, fmt.Errorf("%d objects of %s cannot be removed", len(left), kind.list)
		}
	}
	return removed, nil
}

// removedIPC marks shared memory that goes, like a file that is open, when nobody has it any more (SHM_DEST).
const removedIPC = 0o1000

// ipcObject is one of System V's objects, with a user who may remove it.
type ipcObject struct {
	id   int
	user uint32
}

// ownedIPC are those in a list of System V's objects that users own or made.
func ownedIPC(list string, isOver func(uid uint32) bool) (objects []ipcObject) {
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
	for _, line := range lines[1:] {
		f := strings.Fields(line)
		if len(f) <= max(columns["perms"], columns["uid"], columns["cuid"]) {
			continue
		}
		mode, _ := strconv.ParseUint(f[columns["perms"]], 8, 32)
		owner, err := strconv.ParseUint(f[columns["uid"]], 10, 32)
		maker, failed := strconv.ParseUint(f[columns["cuid"]], 10, 32)
		id, unread := strconv.Atoi(f[idColumn])
		if err != nil || failed != nil || unread != nil || mode&removedIPC != 0 {
			continue
		}
		for _, user := range []uint32{uint32(owner), uint32(maker)} {
			if isOver(user) {
				objects = append(objects, ipcObject{id, user})
				break
			}
		}
	}
	return objects
}
