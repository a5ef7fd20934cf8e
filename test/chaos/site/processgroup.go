package site

import (
	"os/exec"
	"runtime"
	"syscall"
)

// processGroup starts processes on one thread that never ends. The kernel kills a
// child with the death signal when the thread that forked it ends, and Go's
// threads come and go.
type processGroup chan birth

type birth struct {
	cmd  *exec.Cmd
	done chan<- error
}

func newProcessGroup() processGroup {
	n := make(processGroup)
	go func() {
		runtime.LockOSThread()
		for b := range n {
			b.done <- b.cmd.Start()
		}
	}()
	return n
}

// startCommand starts the command, which will die with us.
func (n processGroup) startCommand(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	// A Ctrl-C at the terminal is for us alone: we decide in which order to end.
	cmd.SysProcAttr.Setpgid = true
	done := make(chan error)
	n <- birth{cmd, done}
	return <-done
}

func (n processGroup) closeGroup() { close(n) }
