package hold

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/forewarm/forewarm/node/launch"
)

// scope is where what belongs to a hold is found.
type scope struct {
	id       string
	record   record
	launcher launch.Launcher
	folders  []string              // in which holders may leave files, beside the hold's own
	isOver   func(uid uint32) bool // whether what a user left is to go: the hold's own, and those whose holds have ended
	left     map[uint32]bool       // users in whose folders not everything was seen: see yard
}

// scopeOf is where what belongs to a hold is found. What users of earlier holds own is looked for with it: somebody
// else may have kept a program of theirs, which left something since.
func (k *Keeper) scopeOf(id string, r record) scope {
	k.mu.Lock()
	defer k.mu.Unlock()
	at, inUse := k.book, map[uint32]bool{}
	for other, r := range at.Holds {
		if other != id && (r.Phase == open || r.Phase == ending) {
			inUse[r.UID] = true
		}
	}
	return scope{id: id, record: r, launcher: k.Launcher, folders: append(slices.Clone(sharedFolders), k.Dir),
		left: map[uint32]bool{}, isOver: func(uid uint32) bool {
			return isHolder(uid) && (uid == r.UID || at.handedOut(uid) && !inUse[uid])
		}}
}

// lookEvery is how often processes are looked for while they end.
const lookEvery = 20 * time.Millisecond

// killWithin is how long the kernel may take to end what was killed. What takes longer
// hangs in a driver.
const killWithin = 5 * time.Second

// killOnceWithin is how long one try to kill all processes of a user may take: they may stop whoever tries.
const killOnceWithin = time.Second

// endProcesses ends all processes of a hold: TERM, a grace, KILL. It returns how many there
// were; the error names those that cannot be ended.
func (s scope) endProcesses(grace time.Duration) (int, error) {
	seen := map[int]bool{}
	_ = repeat(grace, func() error {
		left, err := s.processes()
		for _, pid := range left {
			if !seen[pid] {
				seen[pid] = true
				signal(pid, syscall.SIGTERM)
			}
		}
		return errors.Join(err, stillThere(left))
	})
	// Also where none is seen: those that keep forking come and go between two looks.
	return len(seen), repeat(killWithin, func() error {
		s.killAtOnce()
		left, err := s.processes()
		for _, pid := range left {
			seen[pid] = true
			signal(pid, syscall.SIGKILL)
		}
		if err = errors.Join(err, stillThere(left)); err == nil {
			err = s.removeCgroups()
		}
		return err
	})
}

// repeat calls do until it succeeds or the time is over, and returns its last error.
func repeat(within time.Duration, do func() error) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	over := time.NewTimer(within)
	defer over.Stop()
	for {
		err := do()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-over.C:
			return err
		}
	}
}

func stillThere(left []int) error {
	if len(left) == 0 {
		return nil
	}
	return fmt.Errorf("processes %v do not end", left)
}

// signal signals a process, which may have been stopped.
func signal(pid int, number syscall.Signal) {
	_ = syscall.Kill(pid, number)
	_ = syscall.Kill(pid, syscall.SIGCONT)
}

// killAtOnce kills what can be killed in one go: processes that keep forking outrun whoever
// kills one after another.
func (s scope) killAtOnce() {
	if s.record.Cgroup != "" && setFile(s.record.Cgroup, "cgroup.kill", "1") != nil { // before Linux 5.14
		_ = setFile(s.record.Cgroup, "cgroup.freeze", "1") // what is frozen does not fork, and can be killed
	}
	if s.record.OwnUser {
		s.killUser()
	}
}

// killUser has a process of the hold's own user kill all others, which reaches no one else's.
func (s scope) killUser() {
	kill, err := s.launcher.Start(launch.Command{Arguments: []string{"/bin/sh", "-c", "kill -KILL -1"}, Directory: "/",
		User: &launch.User{UID: s.record.UID, GID: s.record.GID}})
	if err != nil {
		return // they are killed one after another
	}
	timer := time.NewTimer(killOnceWithin)
	defer timer.Stop()
	select {
	case <-kill.Exited():
	case <-timer.C: // the holder stopped it
		kill.Signal(syscall.SIGKILL)
	}
	kill.Close()
}

// processes are those of a hold that have not ended: of its cgroup, of its user, or, where
// it has neither, those with its mark. Threads that cannot be told are nobody's.
func (s scope) processes() ([]int, error) {
	var found []int
	if s.record.Cgroup != "" {
		_ = filepath.WalkDir(s.record.Cgroup, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.Name() == "cgroup.procs" {
				found = append(found, pidsOf(path)...)
			}
			return nil
		})
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("looking for processes: %w", err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err == nil && pid > 1 && pid != os.Getpid() && s.owns(pid) {
			found = append(found, pid)
		}
	}
	slices.Sort(found)
	return slices.DeleteFunc(slices.Compact(found), hasEnded), nil
}

func (s scope) owns(pid int) bool {
	dir := "/proc/" + strconv.Itoa(pid)
	if s.record.OwnUser {
		status, err := os.ReadFile(dir + "/status")
		return err == nil && slices.Contains(usersOf(status), s.record.UID)
	}
	threads, err := os.ReadDir(dir + "/task") // of a process whose first thread has ended, the others have the environment
	return err == nil && slices.ContainsFunc(threads, func(thread os.DirEntry) bool {
		file := filepath.Join(dir, "task", thread.Name(), "environ")
		environment, err := os.ReadFile(file) //nolint:gosec // the kernel's
		return err == nil && slices.Contains(strings.Split(string(environment), "\x00"), markOf(s.id))
	})
}

// usersOf are the users of a process: real, effective, saved and of its files.
func usersOf(status []byte) []uint32 {
	var all []uint32
	for line := range bytes.Lines(status) {
		text, ok := bytes.CutPrefix(line, []byte("Uid:"))
		if !ok {
			continue
		}
		for _, f := range bytes.Fields(text) {
			if id, err := strconv.ParseUint(string(f), 10, 32); err == nil {
				all = append(all, uint32(id))
			}
		}
	}
	return all
}

func pidsOf(path string) []int {
	text, err := os.ReadFile(path) //nolint:gosec // below our own cgroup
	if err != nil {
		return nil
	}
	var all []int
	for _, f := range strings.Fields(string(text)) {
		if pid, err := strconv.Atoi(f); err == nil && pid > 1 {
			all = append(all, pid)
		}
	}
	return all
}

// hasEnded reports whether a process is gone, but for what its parent has yet to read. One whose
// first thread has ended looks like that too, and is there as long as another one is.
func hasEnded(pid int) bool {
	tasks := "/proc/" + strconv.Itoa(pid) + "/task"
	threads, err := os.ReadDir(tasks)
	return err != nil || !slices.ContainsFunc(threads, func(thread os.DirEntry) bool {
		stat, err := os.ReadFile(filepath.Join(tasks, thread.Name(), "stat")) //nolint:gosec // the kernel's file
		after := stat[bytes.LastIndexByte(stat, ')')+1:]
		return err == nil && !bytes.HasPrefix(after, []byte(" Z")) && !bytes.HasPrefix(after, []byte(" X"))
	})
}

// removeCgroups removes the cgroup of a hold and those in it, deepest first. The kernel refuses while a process is
// in one, whether a look finds it or not.
func (s scope) removeCgroups() error {
	if s.record.Cgroup == "" {
		return nil
	}
	var all []string
	err := filepath.WalkDir(s.record.Cgroup, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			all = append(all, path)
		}
		return nil
	})
	slices.Reverse(all)
	for _, path := range all {
		if e := syscall.Rmdir(path); e != nil && !errors.Is(e, syscall.ENOENT) {
			err = errors.Join(err, fmt.Errorf("removing the cgroup of the hold: %s: %w", path, e))
		}
	}
	return err
}
