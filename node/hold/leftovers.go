package hold

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// sharedFolders are where everybody may leave files.
var sharedFolders = []string{"/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/run/lock", "/var/crash"}

// removeLeftovers removes the files of a hold, and its shared memory, semaphores and message
// queues, reads back that they are gone, and returns how many there were. Where the hold has
// no user of its own, nobody can tell whose the files in shared folders are.
func (s scope) removeLeftovers() (int, error) {
	removed, err := removeTree(s.record.Home)
	if !s.record.OwnUser || err != nil {
		return removed, err
	}
	for _, dir := range sharedFolders {
		n, err := removeOwned(dir, s.record.UID)
		if removed += n; err != nil {
			return removed, err
		}
	}
	n, err := removeIPC(s.record.UID)
	if removed += n; err != nil {
		return removed, err
	}
	if left := ownedIn(sharedFolders, s.record.UID); left != "" {
		return removed, fmt.Errorf("%s cannot be removed", left)
	}
	return removed, nil
}

// removeTree removes a folder without following links, and returns how many entries it had.
func removeTree(dir string) (count int, err error) {
	_ = filepath.WalkDir(dir, func(_ string, _ fs.DirEntry, err error) error {
		if err == nil {
			count++
		}
		return nil
	})
	if err := os.RemoveAll(dir); err != nil {
		return count, fmt.Errorf("removing the folder of the hold: %w", err)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		return count, fmt.Errorf("the folder of the hold, %s, is still there", dir)
	}
	return max(0, count-1), nil
}

// removeOwned removes what a user owns in a shared folder, at whatever depth. A root that is
// opened once keeps a link from leading elsewhere.
func removeOwned(dir string, uid uint32) (removed int, err error) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("looking for files of the hold: %w", err)
	}
	defer func() { _ = root.Close() }()
	_ = fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == "." || !isOwned(d, uid) {
			return nil //nolint:nilerr // what cannot be read is another's, or is found when it is read back
		}
		if root.RemoveAll(path) == nil {
			removed++
		}
		if d.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
	return removed, nil
}

// ownedIn is the first entry of folders that a user owns; empty: there is none.
func ownedIn(dirs []string, uid uint32) (found string) {
	for _, dir := range dirs {
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && path != dir && isOwned(d, uid) {
				found = path
				return fs.SkipAll
			}
			return nil
		})
	}
	return found
}

func isOwned(d fs.DirEntry, uid uint32) bool {
	info, err := d.Info()
	if err != nil {
		return false
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && s.Uid == uid
}

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
