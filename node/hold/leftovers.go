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
var sharedFolders = []string{"/tmp", "/var/tmp", "/dev/shm", queueFolder, "/run/lock", "/var/crash"}

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

// removeTree removes the folder of a hold, and returns how many entries it had.
func removeTree(dir string) (count int, err error) {
	count, deep := measureTree(dir)
	aside := filepath.Join(filepath.Dir(dir), ".removing-"+filepath.Base(dir)) // also what an earlier try left
	if err = os.Mkdir(aside, 0o700); errors.Is(err, fs.ErrExist) {
		err, deep = nil, true
	}
	if err == nil && !deep {
		err = os.RemoveAll(dir)
	}
	if err == nil && deep {
		if err = moveAside(dir, aside); err == nil || errors.Is(err, fs.ErrNotExist) {
			count, err = emptyFolder(aside)
		}
	}
	if err == nil {
		err = os.Remove(aside)
	}
	if err == nil {
		if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
			return max(0, count-1), nil
		}
		err = errors.New("it is still there")
	}
	return count, fmt.Errorf("removing the folder of the hold: %w", err)
}

// shallow is how deep folders lie in each other at most that are removed as usual, with an open
// file for each level.
const shallow = 200

// measureTree counts the entries of a folder, itself included, as long as it is not deep.
func measureTree(dir string) (count int, deep bool) {
	_ = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err == nil {
			count++
		}
		if deep = strings.Count(path[len(dir):], "/") > shallow; deep {
			return fs.SkipAll
		}
		return nil
	})
	return count, deep
}

// moveAside moves what has a path into a folder of ours, under a name that is free there.
func moveAside(path, aside string) error {
	if _, err := os.Lstat(path); err != nil {
		return err
	}
	to, err := os.MkdirTemp(aside, "")
	if err == nil {
		err = os.Remove(to) // nobody else can take its name
	}
	if err != nil {
		return err
	}
	return os.Rename(path, to)
}

// removeOwned removes what a user owns in a shared folder.
func removeOwned(dir string, uid uint32) (removed int, err error) {
	root, err := os.OpenRoot(dir) // no link leads out of it
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("looking for files of the hold: %w", err)
	}
	defer func() { _ = root.Close() }()
	var deep []string
	walkShared(dir, uid, func(path string, d fs.DirEntry) bool {
		if _, isDeep := measureTree(path); d.IsDir() && isDeep {
			deep = append(deep, path)
		} else if root.RemoveAll(strings.TrimPrefix(path, dir+"/")) == nil { // what stays is found when it is read back
			removed++
		}
		return true
	})
	if len(deep) == 0 {
		return removed, nil
	}
	aside, err := os.MkdirTemp(dir, "forewarm-removing-")
	if err != nil {
		return removed, fmt.Errorf("removing files of the hold: %w", err)
	}
	for _, path := range deep {
		_ = moveAside(path, aside) // as above
	}
	n, err := emptyFolder(aside)
	if err = errors.Join(err, os.Remove(aside)); err != nil {
		return removed + n, fmt.Errorf("removing files of the hold: %w", err)
	}
	return removed + n, nil
}

// ownedIn is the first entry of folders that a user owns; empty: there is none.
func ownedIn(dirs []string, uid uint32) (found string) {
	for _, dir := range dirs {
		walkShared(dir, uid, func(path string, _ fs.DirEntry) bool {
			found = path
			return false
		})
	}
	return found
}

// mostDepth is how deep folders that everybody may write to lie in each other, at most, for
// whoever looks through them.
const mostDepth = 32

// walkShared calls found for each entry of a shared folder that a user owns, unless it lies in
// one that the user owns, until it returns false. A user can leave nothing in the folders of others
// that not everybody may write to.
func walkShared(dir string, uid uint32, found func(path string, d fs.DirEntry) bool) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return nil //nolint:nilerr // what is gone needs no look
		}
		if isOwned(d, uid) {
			if !found(path, d) {
				return fs.SkipAll
			}
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if !d.IsDir() {
			return nil
		}
		info, err := d.Info()
		deep := strings.Count(path[len(dir):], "/") > mostDepth
		if err != nil || deep || info.Mode().Perm()&0o002 == 0 {
			return fs.SkipDir
		}
		return nil
	})
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
