package launch

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// StartAlone starts a command as Start does, for a program that does nothing else. Where nothing that the holder
// controls is touched before the command runs, it needs no launcher, which costs as much as the start of a program
// in Go. Where that fails, a launcher tries again, and says why.
func (l Launcher) StartAlone(c Command) (*Child, error) {
	program, ok := c.systemProgram()
	if !ok || c.Terminal || c.Directory != c.Home {
		return l.Start(c)
	}
	child, err := c.fork(program)
	if err != nil {
		return l.Start(c)
	}
	return child, nil
}

// systemFolders are those in which only the machine's owner puts programs.
var systemFolders = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

// systemProgram returns the path of the command's program, if that is in one of those folders, and is found before
// anything is looked for elsewhere.
func (c Command) systemProgram() (path string, ok bool) {
	name := c.Arguments[0]
	if strings.Contains(name, "/") {
		return name, slices.Contains(systemFolders, filepath.Dir(name)) && filepath.Clean(name) == name
	}
	for _, dir := range filepath.SplitList(pathIn(c.Environment)) {
		if !slices.Contains(systemFolders, dir) {
			return "", false
		}
		if found, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return found, true
		}
	}
	return "", false
}

// fork starts a program with the user and the cgroup of its command.
func (c Command) fork(program string) (*Child, error) {
	cmd := &exec.Cmd{Path: program, Args: c.Arguments, Env: c.Environment, Dir: c.Directory,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGHUP}}
	if c.User != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: c.User.UID, Gid: c.User.GID}
	}
	c.connect(cmd)
	done, err := c.enterCgroup(cmd)
	if err != nil {
		return nil, err
	}
	defer done()
	child := &Child{cmd: cmd, exited: make(chan struct{})}
	return child, child.run(forgoSetUserID)
}

// forgoSetUserID has what this thread starts gain nothing from programs that are set-user-id. The thread ends with the
// goroutine.
func forgoSetUserID() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("giving up set-user-id programs: %w", err)
	}
	return nil
}

// enterCgroup has a command begin in its cgroup. What it opens for that, done closes.
func (c Command) enterCgroup(cmd *exec.Cmd) (done func(), err error) {
	if c.Cgroup == "" {
		return func() {}, nil
	}
	dir, err := os.Open(c.Cgroup)
	if err != nil {
		return nil, fmt.Errorf("opening the cgroup of the allocation: %w", err)
	}
	cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(dir.Fd()) //nolint:gosec // a descriptor is small
	return func() { _ = dir.Close() }, nil
}

// run starts the command on a thread of its own, which stays until it has ended: the kernel hangs the command
// up with the thread, and so with a program that is killed. Before, the thread is prepared.
func (c *Child) run(prepare func() error) error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the thread is not as others any more
		err := prepare()
		if err == nil {
			err = c.cmd.Start()
		}
		started <- err
		if err == nil {
			_ = c.cmd.Wait() // how it ended is in its ProcessState
			close(c.exited)
		}
	}()
	return <-started
}
