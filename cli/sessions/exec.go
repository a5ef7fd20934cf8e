// Package sessions has the commands that use the nodes of an allocation through their
// daemons: exec, port and cp.
package sessions

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/names"
	"github.com/forewarm/forewarm/client/session"
	wire "github.com/forewarm/forewarm/contract/session"
	"github.com/forewarm/forewarm/core/access"
)

// at is where a session is opened.
type at struct {
	server session.Server
	id     string // of the allocation
	node   int    // the rank
}

// open finds the allocation that ref names, or that the job has which it names.
func open(a *app.App, cmd *cobra.Command, ref string, node int) (at, error) {
	_, id, err := names.SessionAllocationID(a, cmd, ref)
	if err != nil {
		return at{}, err
	}
	api, err := a.NewClient()
	if err != nil {
		return at{}, err
	}
	return at{session.Server{API: api, HTTP: a.NewSessionClient(), Patience: a.SessionPatience}, id, node}, nil
}

// check fails where the allocation is not there, or has no GPUs now: before something listens,
// and in a dry run, when no session says so.
func (w at) check(ctx context.Context) error {
	got, err := w.server.API.Allocation(ctx, w.id)
	if err == nil && got.State != "active" {
		err = &exit.Error{Code: exit.Conflict, Message: w.id + " is " + got.State + ": it has no GPUs now",
			Next: []string{"forewarm allocations show " + w.id}}
	}
	return err
}

// NewExecCommand is the command exec.
func NewExecCommand(a *app.App) *cobra.Command {
	var node int
	var terminal bool
	var variables []string
	var command wire.Command
	c := &cobra.Command{
		Use: "exec ALLOCATION [-- COMMAND…]", Short: "Run a command on an allocation's GPUs, through the node's daemon",
		Args: flags.OneBeforeDash("ALLOCATION"),
		Long: `Run a command, or a shell, on a node of an allocation, through the daemon of the node: nothing but the control
plane has to be reached from here. Input, output, signals and the exit code are the command's.

A job has an allocation while it runs: its name, its id and 'NAME[INDEX]' are found, too.

It runs in a folder of the allocation's own, with the environment of forewarm env. That folder, and all that runs there,
ends with the allocation. Where the connection is cut, or the control plane or the node's daemon begins anew, the
command goes on, and this program comes back to it within a minute; after that it is hung up. What is to go on without
this program belongs behind nohup or into tmux. Ctrl-C reaches the command; the third one hangs it up, and so does who
reads what it says and has read enough, such as head(1).`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if command.Environment, err = flags.ParseVariables(cmd, "env", variables); err != nil {
				return err
			}
			command.Arguments = args[1:]
			where, err := open(a, cmd, args[0], node)
			if err != nil {
				return err
			}
			if a.Flags.DryRun {
				if err := where.check(cmd.Context()); err != nil {
					return err
				}
				a.Say(cmd, "Dry run: nothing was run on %s: %s", where.id, access.Quote(command.Arguments))
				return nil
			}
			terminal = terminal || len(args) == 1 && a.Terminal(cmd.InOrStdin()) && a.Terminal(cmd.OutOrStdout())
			return run(cmd, where, command, terminal)
		},
	}
	f := c.Flags()
	f.IntVar(&node, "node", 0, "the rank of the node")
	f.BoolVarP(&terminal, "tty", "t", false, "give the command a terminal, as a shell has one")
	f.StringArrayVar(&variables, "env", nil, "a variable of the command, as NAME=VALUE; repeat it for more (what the "+
		"allocation sets stays as it is)")
	f.StringVar(&command.Directory, "dir", "", "where it begins (default the allocation's folder on the node)")
	return c
}

// run runs a command with this program's streams, and ends as it did.
func run(cmd *cobra.Command, where at, command wire.Command, terminal bool) error {
	c := session.Command{Command: command, Node: where.node, Stdin: cmd.InOrStdin(), Stdout: cmd.OutOrStdout(),
		Stderr: cmd.ErrOrStderr()}
	if terminal {
		restore, err := useTerminal(cmd, &c)
		if err != nil {
			return err
		}
		defer restore()
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(cmd.Context())) // its signals end it
	defer cancel()
	signals, stop := catchSignals(cancel)
	defer stop()
	c.Signals = signals
	sayWhenCut(cmd, &c, terminal)
	end, err := where.server.Run(ctx, where.id, c)
	switch {
	case err != nil && ctx.Err() != nil:
		return &exit.StatusError{Code: exit.Interrupt}
	case errors.Is(err, syscall.EPIPE) && !errors.Is(err, session.ErrCut): // as a program that does not listen for it
		return &exit.StatusError{Code: 128 + int(syscall.SIGPIPE)}
	case err != nil:
		return suggestPath(explain(where, err), where, command)
	}
	if end.Reason != "" {
		_, _ = fmt.Fprintln(cmd.ErrOrStderr(), "forewarm: "+format.Plain(end.Reason))
	}
	if end.ExitCode != 0 {
		return &exit.StatusError{Code: end.ExitCode}
	}
	return nil
}

// sayWhenCut tells the person when the connection is cut, and when it stands again. A terminal that hands everything on
// as it is typed also shows everything as it is written.
func sayWhenCut(cmd *cobra.Command, c *session.Command, raw bool) {
	newLine := "\n"
	if raw {
		newLine = "\r\n"
	}
	say := func(text string) {
		_, _ = fmt.Fprint(cmd.ErrOrStderr(), newLine[:len(newLine)-1]+"forewarm: "+text+newLine)
	}
	c.Interrupted = func(error) {
		say("the connection was cut; the command goes on, and is come back to for up to " + format.Duration(wire.Patience))
	}
	c.Resumed = func() { say("connected again") }
}

// suggestPath also says how to name the folder of a program that was not found.
func suggestPath(err error, where at, command wire.Command) error {
	e, ok := errors.AsType[*exit.Error](err)
	if ok && e.Code == exit.NotStarted && strings.Contains(e.Message, "there is no such program") {
		e.Next = append(e.Next, fmt.Sprintf("forewarm exec %s --env PATH=/opt/venv/bin:/usr/bin:/bin -- %s", where.id,
			access.Quote(command.Arguments)))
	}
	return err
}

// useTerminal gives a command a terminal like ours, which hands everything on as it is typed
// until restore is called.
func useTerminal(cmd *cobra.Command, c *session.Command) (restore func(), err error) {
	t := &wire.Terminal{Name: os.Getenv("TERM"), Size: wire.Size{Columns: 80, Rows: 24}}
	c.Terminal = t
	in, ok := cmd.InOrStdin().(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) { //nolint:gosec // a descriptor is small
		return func() {}, nil
	}
	fd := int(in.Fd()) //nolint:gosec // as above
	if size, ok := sizeOf(fd); ok {
		t.Size = size
	}
	state, err := term.MakeRaw(fd)
	if err != nil {
		return nil, fmt.Errorf("preparing the terminal: %w", err)
	}
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	sizes, done := make(chan wire.Size), make(chan struct{})
	c.Resize = sizes
	go func() {
		for {
			select {
			case <-done:
				return
			case <-resized:
			}
			if size, ok := sizeOf(fd); ok {
				select {
				case sizes <- size:
				case <-done:
					return
				}
			}
		}
	}()
	return func() {
		signal.Stop(resized)
		close(done)
		_ = term.Restore(fd, state)
	}, nil
}

func sizeOf(fd int) (wire.Size, bool) {
	columns, rows, err := term.GetSize(fd)
	return wire.Size{Columns: columns, Rows: rows}, err == nil && columns > 0 && rows > 0 &&
		columns <= wire.MostCells && rows <= wire.MostCells
}

// forwarded are the signals that go to the command instead of ending this program.
var forwarded = map[os.Signal]string{syscall.SIGINT: "INT", syscall.SIGTERM: "TERM", syscall.SIGHUP: "HUP",
	syscall.SIGQUIT: "QUIT", syscall.SIGUSR1: "USR1", syscall.SIGUSR2: "USR2"}

// patience is how often somebody types Ctrl-C until the command is hung up.
const patience = 3

// catchSignals hands signals on by name, until stop is called. It calls hangUp when Ctrl-C
// has come too often. That nobody reads what the command says does not end this program by itself: the command is hung
// up first.
func catchSignals(hangUp func()) (names <-chan string, stop func()) {
	caught, out, done := make(chan os.Signal, 8), make(chan string), make(chan struct{})
	for s := range forwarded {
		signal.Notify(caught, s)
	}
	unread := make(chan os.Signal, 1)
	signal.Notify(unread, syscall.SIGPIPE)
	go func() {
		for interrupts := 0; ; {
			select {
			case <-done:
				return
			case s := <-caught:
				if s == syscall.SIGINT {
					interrupts++
				}
				if interrupts == patience {
					hangUp()
					return
				}
				select {
				case out <- forwarded[s]:
				case <-done:
					return
				}
			}
		}
	}()
	return out, func() {
		signal.Stop(caught)
		signal.Stop(unread)
		close(done)
	}
}

// explain says how a session ended that has no exit code.
func explain(where at, err error) error {
	look := []string{"forewarm status", "forewarm allocations show " + where.id}
	ended, ok := errors.AsType[*session.EndError](err)
	switch {
	case errors.Is(err, session.ErrCut):
		return &exit.Error{Code: exit.Failed, Message: session.ErrCut.Error() + "; it is being hung up, if it was not",
			Err: err, Next: look}
	case !ok:
		return err
	}
	e := &exit.Error{Code: exit.Failed, Message: ended.Error(), Err: err, Next: look}
	switch ended.Code {
	case wire.NotStarted:
		e.Code, e.Next = exit.NotStarted, []string{"forewarm exec " + where.id} // a shell, to look for it
	case wire.NodeLost: // whether it still runs can be seen there
		e.Next = append(look, "forewarm exec "+where.id+" -- ps -ef")
	case wire.NotThere:
		e.Message = "the connection was cut, and the command is not there any more: " + e.Message
	case wire.LeaseOver, wire.Refused:
		e.Code, e.Next = exit.Conflict, look[1:]
		if strings.Contains(ended.Reason, wire.AwaitPlace) { // the allocation shows none of its sessions
			e.Next = []string{"forewarm exec " + where.id}
		}
	}
	return e
}
