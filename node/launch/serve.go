package launch

import (
	"encoding/gob"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// The files that a launcher is started with.
const (
	orderFile  = 3
	reportFile = 4
)

// Serve becomes the command that the daemon asks for. It returns, with the exit code, only if it
// cannot. It must be called before anything in the process heeds signals.
func Serve() (exitCode int) {
	syscall.CloseOnExec(orderFile)
	syscall.CloseOnExec(reportFile)
	report := os.NewFile(reportFile, "report")
	refusal := serve(os.NewFile(orderFile, "order"), report).Error()
	_, _ = report.WriteString(refusal[:min(len(refusal), mostRefusal)])
	return 1
}

// serve returns why it could not become the command.
func serve(from, report *os.File) error {
	runtime.LockOSThread() // a part of what follows is the thread's
	var o order
	if err := gob.NewDecoder(from).Decode(&o); err != nil {
		return fmt.Errorf("reading what to start: %w", err)
	}
	if err := o.confine(); err != nil {
		return fmt.Errorf("starting a command: %w", err)
	}
	if _, err := report.WriteString(ready); err != nil {
		return err
	}
	return o.become()
}

// confine takes the user of the command, and gives up what a program could get beyond it.
func (o order) confine() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("giving up set-user-id programs: %w", err)
	}
	if o.User != nil {
		uid, gid := int(o.User.UID), int(o.User.GID)
		if err := syscall.Setgroups(nil); err != nil {
			return fmt.Errorf("leaving the daemon's groups: %w", err)
		}
		if err := syscall.Setresgid(gid, gid, gid); err != nil {
			return fmt.Errorf("taking the group %d: %w", gid, err)
		}
		if err := syscall.Setresuid(uid, uid, uid); err != nil {
			return fmt.Errorf("taking the user %d: %w", uid, err)
		}
	}
	// The kernel forgets this one with a change of the user.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGHUP), 0, 0, 0); err != nil {
		return fmt.Errorf("ending with the daemon: %w", err)
	}
	if os.Getppid() != o.Daemon {
		return errors.New("the daemon is gone")
	}
	return nil
}

// become replaces the process by the command. It returns only if that cannot be.
func (o order) become() error {
	if err := syscall.Chdir(o.Directory); err != nil {
		return fmt.Errorf("starting %s in the folder %s: %w", o.Arguments[0], o.Directory, o.explainClosed(err, o.Directory))
	}
	program, err := o.find(o.Arguments[0])
	if err != nil {
		return err
	}
	err = syscall.Exec(program, o.Arguments, o.Environment) //nolint:gosec // it is the holder's, as its user
	if filepath.IsAbs(program) {
		err = o.explainClosed(err, filepath.Dir(program))
	}
	return fmt.Errorf("starting %s: %w", o.Arguments[0], err)
}

// find returns the path of a program, as a shell with the command's environment finds it. A
// folder that cannot be looked through is told of.
func (o order) find(program string) (string, error) {
	if strings.Contains(program, "/") {
		return program, nil
	}
	path, closed := pathIn(o.Environment), ""
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		found, err := exec.LookPath(filepath.Join(dir, program))
		if err == nil {
			return found, nil
		}
		if errors.Is(err, syscall.EACCES) && closed == "" {
			if folder, _ := closedFolder(dir); folder != "" {
				closed = "; " + o.explainClosed(syscall.EACCES, dir).Error()
			}
		}
	}
	return "", fmt.Errorf("starting %s: there is no such program in %s%s", program, path, closed)
}

// pathIn is where an environment has programs be looked for.
func pathIn(env []string) (path string) {
	for _, v := range env {
		if after, ok := strings.CutPrefix(v, "PATH="); ok {
			path = after
		}
	}
	return path
}
