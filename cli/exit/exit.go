// Package exit has the exit codes of the command line, which scripts depend on,
// and the error that carries one, with a command to run next.
package exit

import (
	"context"
	"errors"
	"fmt"
	"syscall"
)

// The exit codes. Scripts choose by them.
const (
	OK         = 0
	Failed     = 1
	Usage      = 2   // the command or a value in it is wrong
	Login      = 4   // no valid key
	NotFound   = 5   //
	Conflict   = 6   // its state, or somebody else's change, does not allow it
	Policy     = 7   // quota, budget, cap or role
	NoCapacity = 8   // later it may work
	Timeout    = 9   // --wait gave up; what was waited for goes on
	WaitFailed = 10  // what the command waited for failed
	NotStarted = 127 // exec, run: there is no such command on the node, as shells and ssh have it
	Interrupt  = 130 // Ctrl-C
	Terminated = 143 // SIGTERM
)

// Error is a failure with its exit code and what to run next.
type Error struct {
	Code    int
	Message string
	Detail  []string // further lines, such as all blockers
	Next    []string // commands to run, most useful first
	Err     error    // the cause; may be nil
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Interrupted is the cause of a context that a signal ended.
type Interrupted struct{ Signal syscall.Signal }

// Error names the signal, as people do.
func (i *Interrupted) Error() string {
	if i.Signal == syscall.SIGTERM {
		return "ended by SIGTERM"
	}
	return "interrupted by Ctrl-C"
}

// Is makes it what the end of any other context is.
func (i *Interrupted) Is(target error) bool { return target == context.Canceled }

// InterruptCode is the exit code that shells give a program which a signal
// ended.
func InterruptCode(ctx context.Context) int {
	var i *Interrupted
	if errors.As(context.Cause(ctx), &i) && i.Signal == syscall.SIGTERM {
		return Terminated
	}
	return Interrupt
}

// StatusError is the exit code of a program that ran for the command, and has said itself what
// there is to say.
type StatusError struct{ Code int }

// Error names the code.
func (e *StatusError) Error() string { return fmt.Sprintf("it ended with the exit code %d", e.Code) }

// UsageErrorf returns a usage error and the command to run next.
func UsageErrorf(next, format string, args ...any) *Error {
	return &Error{Code: Usage, Message: fmt.Sprintf(format, args...), Next: []string{next}}
}
