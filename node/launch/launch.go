// Package launch starts the commands of holders so that nothing a holder does to them reaches the
// daemon.
//
// Until it has become another program, a process that Go starts shares the memory of the one that
// started it, and halts it. What a holder controls may take any time to become: whoever owns a
// program can have the kernel wait with it, a folder may be on a server that is gone, and a process
// with the holder's user can be stopped by the holder. So the daemon starts its own program, still
// as root, from where only root can write; that one, a process of its own, takes the holder's user,
// goes to the folder, and becomes the command.
package launch

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Launcher is the command line of a program that calls Serve: the daemon's own.
type Launcher []string

// User is whose a command is.
type User struct{ UID, GID uint32 }

// Command is what a launcher becomes.
type Command struct {
	Arguments   []string // the program first, which is looked for in the PATH of the environment
	Environment []string
	Directory   string
	Home        string // the allocation's own folder; what is above it is not the holder's to open
	User        *User  // nil: the daemon's own

	In, Out, Err *os.File // nil: nothing
	Terminal     bool     // In is one, and controls the session
	Cgroup       string   // the folder of a cgroup v2; empty: the daemon's
	Mark         string   // a variable by which the launcher is found until it is the command; may be empty
}

// order is what a launcher is told: by a pipe, as the holder must not choose its environment, and
// as anyone can read its arguments.
type order struct {
	Arguments   []string
	Environment []string
	Directory   string
	Home        string
	User        *User
	Daemon      int // its process: a launcher whose daemon is gone starts nothing
}

// Child is a command, or a launcher that is about to become it.
type Child struct {
	cmd    *exec.Cmd
	exited chan struct{}
	said   *os.File // by a launcher; nil: there was none
}

const (
	// obeysWithin is how long a launcher may take until it is the command's user.
	obeysWithin = 10 * time.Second
	// ready is what it says then, before it touches anything that is the holder's.
	ready = "ready\n"
	// mostRefusal bounds what it says when it cannot become the command, in bytes: the kernel keeps
	// so much of a pipe until somebody reads it.
	mostRefusal = 32 << 10
)

// Start returns once the launcher has the user and the cgroup of the command, by which it is found.
// Nobody waits until it is the command: if it cannot become that, it ends, and Close says why.
func (l Launcher) Start(c Command) (*Child, error) {
	if len(l) == 0 {
		return nil, errors.New("starting a command: there is no launcher")
	}
	cmd := &exec.Cmd{Path: l[0], Args: l, Dir: "/", Env: []string{"GOMAXPROCS=1"},
		SysProcAttr: &syscall.SysProcAttr{Setsid: true, Setctty: c.Terminal, Pdeathsig: syscall.SIGHUP}}
	if c.Mark != "" {
		cmd.Env = append(cmd.Env, c.Mark)
	}
	c.connect(cmd)
	done, err := c.enterCgroup(cmd)
	if err != nil {
		return nil, err
	}
	defer done()
	child := &Child{cmd: cmd, exited: make(chan struct{})}
	tell, err := child.open()
	if err != nil {
		return nil, fmt.Errorf("starting the launcher: %w", err)
	}
	if err := child.command(tell, c); err != nil {
		child.Signal(syscall.SIGKILL)
		_ = child.said.Close()
		return nil, err
	}
	return child, nil
}

// connect gives the launcher the standard streams of its command: a file that is none must not
// look like one.
func (c Command) connect(cmd *exec.Cmd) {
	if c.In != nil {
		cmd.Stdin = c.In
	}
	if c.Out != nil {
		cmd.Stdout = c.Out
	}
	if c.Err != nil {
		cmd.Stderr = c.Err
	}
}

// open runs the launcher with a pipe in each direction, and returns that by which it is told.
func (c *Child) open() (tell *os.File, err error) {
	told, tell, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = told.Close() }()
	said, say, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, tell.Close())
	}
	defer func() { _ = say.Close() }()
	c.said, c.cmd.ExtraFiles = said, []*os.File{told, say} // orderFile and reportFile
	if err := c.run(func() error { return nil }); err != nil {
		_, _ = tell.Close(), said.Close()
		return nil, err
	}
	return tell, nil
}

// command tells the launcher what to become, and waits until it is about to. It closes tell.
func (c *Child) command(tell *os.File, what Command) error {
	within := time.Now().Add(obeysWithin) //nolint:forbidigo // the kernel's time, for a deadline
	_ = tell.SetDeadline(within)
	_ = c.said.SetDeadline(within)
	err := gob.NewEncoder(tell).Encode(order{Arguments: what.Arguments, Environment: what.Environment,
		Directory: what.Directory, Home: what.Home, User: what.User, Daemon: os.Getpid()})
	if err := errors.Join(err, tell.Close()); err != nil {
		return fmt.Errorf("telling the launcher what to start: %w", err)
	}
	first := make([]byte, len(ready))
	n, err := io.ReadFull(c.said, first)
	if err == nil && string(first) == ready {
		return c.said.SetDeadline(time.Time{})
	}
	if n == 0 {
		return fmt.Errorf("waiting for the launcher: %w", err)
	}
	rest, _ := io.ReadAll(io.LimitReader(c.said, mostRefusal))
	return errors.New(string(first[:n]) + string(rest))
}

// Exited is closed once the command has ended.
func (c *Child) Exited() <-chan struct{} { return c.exited }

// Status is how a command that has ended did so.
func (c *Child) Status() syscall.WaitStatus {
	status, _ := c.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return status
}

// MostMemory is how much memory a command that has ended, or one of the processes that it waited for, had
// at once, in bytes.
func (c *Child) MostMemory() int64 {
	select {
	case <-c.exited:
	default:
		return 0
	}
	usage, _ := c.cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if usage == nil {
		return 0
	}
	return usage.Maxrss << 10
}

// Signal sends a signal to the process group of the command, as long as the command is there:
// afterwards its number may be another's.
func (c *Child) Signal(s syscall.Signal) {
	select {
	case <-c.exited:
	default:
		_ = syscall.Kill(-c.cmd.Process.Pid, s)
	}
}

// SignalLeader sends a signal to the command alone, as long as it is there.
func (c *Child) SignalLeader(s syscall.Signal) {
	select {
	case <-c.exited:
	default:
		_ = syscall.Kill(c.cmd.Process.Pid, s)
	}
}

// Close ends what is the daemon's of a command, and returns why its launcher, which has ended, did
// not become it. It is empty for one that ran, and for one that has not ended.
func (c *Child) Close() (refusal string) {
	if c.said == nil { // it had no launcher
		return ""
	}
	defer func() { _ = c.said.Close() }()
	select {
	case <-c.exited:
		text, _ := io.ReadAll(io.LimitReader(c.said, mostRefusal))
		return string(text)
	default:
		return ""
	}
}
