package slurm

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// output is what a command prints, on its way to who takes it.
//
// os/exec would do for a command that is read as fast as it prints. But it closes the
// pipe of one that has ended after WaitDelay, whoever is at fault: a reader that takes its
// time over a long listing, or a process that was left behind and holds the pipe.
type output struct {
	pipe  *os.File
	to    io.Writer
	ended chan struct{} // closed once the command has ended
	grace time.Duration // how long another process may hold the pipe after that, without a word
}

// mostLeft is more than a pipe holds: who prints more after the command has ended is
// another process.
const mostLeft = 1 << 20

// runCopied runs the command as its Run does, with its standard output copied to to. How
// long a Write takes is no reason to fail once the command has ended.
func runCopied(command *exec.Cmd, to io.Writer) error {
	pipe, into, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("making a pipe: %w", err)
	}
	defer pipe.Close()
	command.Stdout = into
	err = command.Start()
	_ = into.Close()
	if err != nil {
		return err
	}
	o := output{pipe: pipe, to: to, ended: make(chan struct{}), grace: command.WaitDelay}
	copied := make(chan error, 1)
	go func() { copied <- o.copyAll() }()
	err = command.Wait()
	o.limitRead()
	close(o.ended)
	if left := <-copied; err == nil {
		err = left
	}
	return err
}

// limitRead ends the next Read, or the one that waits, if nothing comes.
func (o output) limitRead() {
	_ = o.pipe.SetReadDeadline(time.Now().Add(o.grace)) //nolint:forbidigo // the kernel's clock ends the Read
}

// copyAll copies until nobody can print any more. Each Read after the command's end has
// its own time: what passes while its output is taken does not count.
func (o output) copyAll() error {
	buffer := make([]byte, 32<<10)
	for left := mostLeft; left > 0; {
		ended := o.hasEnded()
		if ended {
			o.limitRead()
		}
		n, err := o.pipe.Read(buffer)
		if _, failed := o.to.Write(buffer[:n]); failed != nil {
			return failed
		}
		if ended {
			left -= n
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, os.ErrDeadlineExceeded) && !ended:
			<-o.ended // its Read may have begun long before
		case errors.Is(err, os.ErrDeadlineExceeded):
			return exec.ErrWaitDelay
		case err != nil:
			return err
		}
	}
	return exec.ErrWaitDelay
}

func (o output) hasEnded() bool {
	select {
	case <-o.ended:
		return true
	default:
		return false
	}
}
