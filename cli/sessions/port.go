package sessions

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/client/session"
	"github.com/forewarm/forewarm/contract"
	wire "github.com/forewarm/forewarm/contract/session"
	"github.com/forewarm/forewarm/internal/httpx"
)

// NewPortCommand is the command port.
func NewPortCommand(a *app.App) *cobra.Command {
	var node int
	c := &cobra.Command{
		Use: "port ALLOCATION [LOCAL:]PORT", Short: "Reach a TCP port of an allocation's node from here",
		Args: flags.ExactArgs("ALLOCATION", "PORT"),
		Long: `Listen on 127.0.0.1, and carry each connection to a port of a node's loopback interface, through the daemon of
the node, until Ctrl-C or the end of the allocation: a notebook or an inference server there can be used as if it ran
here.

Twelve connections are carried at a time; others wait until one of these ends.

Programs of other holders on the node reach what listens there, too: give it a token or a password.

LOCAL is the port here, PORT's number if it is left out, and any free one if it is 0.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			local, remote, err := parsePorts(args[1])
			if err != nil {
				return err
			}
			where, err := open(a, cmd, args[0], node)
			if err != nil {
				return err
			}
			if err := where.check(cmd.Context()); err != nil {
				return err
			}
			if a.Flags.DryRun {
				a.Say(cmd, "Dry run: nothing was forwarded.")
				return nil
			}
			events, err := a.NewStreamClient()
			if err != nil {
				return err
			}
			return forward(cmd, where, events, local, remote)
		},
	}
	c.Flags().IntVar(&node, "node", 0, "the rank of the node")
	return c
}

func parsePorts(text string) (local, remote int, err error) {
	here, there, both := strings.Cut(text, ":")
	if !both {
		there = here
	}
	local, err1 := strconv.Atoi(here)
	remote, err2 := strconv.Atoi(there)
	if err1 != nil || err2 != nil || local < 0 || local > 65535 || remote < 1 || remote > 65535 {
		return 0, 0, exit.UsageErrorf("forewarm port --help", "%s: must be PORT or LOCAL:PORT, such as 8888 or 9000:8888",
			text)
	}
	return local, remote, nil
}

// forward carries connections until the command is interrupted, or no other can be had.
func forward(cmd *cobra.Command, where at, events *client.Client, local, remote int) error {
	ctx, end := context.WithCancelCause(cmd.Context())
	defer end(nil)
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(local)))
	if err != nil {
		return &exit.Error{Code: exit.Conflict, Message: describeListening(local, err), Err: err,
			Next: []string{fmt.Sprintf("forewarm port %s 0:%d", where.id, remote)}}
	}
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	_, _ = fmt.Fprintf(cmd.OutOrStdout(), "%s is port %d of %s; Ctrl-C ends it\n", l.Addr(), remote, where.id)
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { endWithAllocation(ctx, where, events, end) })
	turns := make(chan struct{}, mostConnections)
	for {
		conn, err := l.Accept()
		if cmd.Context().Err() != nil {
			return nil // it was told to end
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return fmt.Errorf("accepting a connection: %w", err)
		}
		all.Go(func() {
			defer func() { _ = conn.Close() }()
			select {
			case turns <- struct{}{}:
				defer func() { <-turns }()
			case <-ctx.Done():
				return
			}
			err := carry(ctx, where, conn, remote)
			switch {
			case err == nil || ctx.Err() != nil:
			case isFinal(err):
				end(explain(where, err))
			default:
				_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "forewarm: %s\n", describeConnection(err))
			}
		})
	}
}

const (
	// mostConnections are carried at a time, which is as many as a node carries for a holder: others wait.
	mostConnections = 12
	// watchAgain is how soon the events of an allocation are followed again, and it is looked whether it is over.
	watchAgain = 15 * time.Second
)

// endWithAllocation ends the command once no connection can be had any more.
func endWithAllocation(ctx context.Context, where at, events *client.Client, end context.CancelCauseFunc) {
	f := client.EventFilter{Subject: where.id}
	for {
		for e, err := range events.FollowEvents(ctx, f) {
			if err != nil {
				break
			}
			f.After = e.Seq
			if kind, state, _ := strings.Cut(e.Type, "."); kind == "allocation" && slices.Contains(over, state) {
				end(where.over(wire.WhyOver(where.id, state, e.ActorName)))
				return
			}
		}
		if err := where.check(ctx); isFinal(err) {
			end(err)
			return
		}
		timer := time.NewTimer(watchAgain)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// over are the states in which an allocation has no GPUs any more.
var over = []string{"released", "expired", "failed"}

// over is the end of a command whose allocation is.
func (w at) over(why string) error {
	return &exit.Error{Code: exit.Conflict, Message: format.Plain(why),
		Next: []string{"forewarm allocations show " + w.id}}
}

// describeListening says why a port of this machine cannot be had.
func describeListening(port int, err error) string {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Sprintf("port %d of this machine is in use: choose another, or 0 for any that is free", port)
	case errors.Is(err, syscall.EACCES):
		return fmt.Sprintf("port %d of this machine is not yours to listen on: choose one from 1024 on", port)
	}
	return fmt.Sprintf("port %d of this machine cannot be listened on: %v", port, err)
}

// describeConnection says why a connection was not carried: as the node does, if it was told.
func describeConnection(err error) string {
	if ended, ok := errors.AsType[*session.EndError](err); ok {
		return format.Plain(ended.Error())
	}
	return httpx.DescribeFailure(err, "the control plane")
}

// isFinal reports whether a connection ended, or was refused, for a reason that no later one escapes: the
// key, or the allocation, is over.
func isFinal(err error) bool {
	if ended, ok := errors.AsType[*session.EndError](err); ok {
		return ended.Code == wire.LeaseOver
	}
	if e, ok := errors.AsType[*exit.Error](err); ok {
		return e.Code == exit.Conflict
	}
	refused, ok := errors.AsType[*client.Error](err)
	return ok && slices.Contains([]string{contract.CodeUnauthenticated, contract.CodePermissionDenied,
		contract.CodeNotFound, contract.CodeStateConflict}, refused.Problem.Code)
}

// carry carries one connection.
func carry(ctx context.Context, where at, here net.Conn, remote int) error {
	there, err := where.server.Connect(ctx, where.id, where.node, remote)
	if err != nil {
		return err
	}
	defer func() { _ = there.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = here.Close() })
	defer stop()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_, _ = io.Copy(there, here)
		_ = there.CloseWrite()
	}()
	_, err = io.Copy(here, there)
	if tcp, ok := here.(*net.TCPConn); ok && err == nil {
		_ = tcp.CloseWrite()
		select {
		case <-sent: // the other half has ended, too
		case <-ctx.Done():
		}
	}
	if errors.Is(err, session.ErrCut) {
		return nil // whoever uses the connection sees that it broke
	}
	return err
}
