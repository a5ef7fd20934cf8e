package supervise

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/forewarm/forewarm/contract/session"
	"github.com/forewarm/forewarm/node/launch"
	"github.com/forewarm/forewarm/node/work"
)

// socketFile is the socket by which a supervisor is reached.
const socketFile = 3

// mostOrder bounds an order, in bytes.
const mostOrder = 1 << 20

// Run runs the command that it is told, to its end, and returns an exit code. It is the life of a supervisor, which a
// daemon alone starts.
func Run(l launch.Launcher) (exitCode int) {
	if err := run(l); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

var errNotTold = errors.New("sessions are supervised for the daemon alone")

func run(l launch.Launcher) error {
	// What ends it without its command ends the session without an exit code.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
	file := os.NewFile(socketFile, "socket")
	listener, err := net.FileListener(file)
	if err = errors.Join(err, file.Close()); err != nil { // a command would inherit it
		return errNotTold
	}
	defer func() { _ = listener.Close() }()
	var o Order
	if err := json.NewDecoder(io.LimitReader(os.Stdin, mostOrder)).Decode(&o); err != nil {
		return fmt.Errorf("reading what to run: %w", err)
	}
	o.Place.Launcher, o.Place.Alone = l, true
	ctx, hangUp := context.WithCancel(context.Background())
	defer hangUp()
	c := newCompanion(o.Patience, hangUp)
	begun := make(chan struct{})
	go acceptAll(listener, c, begun)
	end := carry(ctx, o, c, begun)
	if c.Send(session.Result, end.Encode()) == nil {
		c.Flush()
	}
	return nil
}

// carry runs the command, and closes begun once it is in its place, or will not be.
func carry(ctx context.Context, o Order, c *companion, begun chan<- struct{}) session.End {
	p, err := work.Start(o.Place, o.Command)
	if close(begun); err != nil {
		return session.End{Code: session.NotStarted, Reason: err.Error()}
	}
	return o.Runner.Carry(ctx, p, c)
}

// acceptAll serves the daemon, and those that come after it.
func acceptAll(l net.Listener, c *companion, begun <-chan struct{}) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go accept(conn, c, begun)
	}
}

// accept serves a connection. Who watches keeps it until this process ends.
func accept(conn net.Conn, c *companion, begun <-chan struct{}) {
	text, err := session.ReadFrame(conn, nil, mostGreeting)
	var g greeting
	if err == nil {
		err = json.Unmarshal(text, &g)
	}
	switch {
	case err != nil:
	case g.Watch:
		<-begun
		if _, err = conn.Write(session.AppendFrame(nil, nil)); err == nil {
			_, err = conn.Read(make([]byte, 1)) // until they leave
		}
	default:
		err = c.attach(session.NewLine(conn), g.Taken)
	}
	if err != nil {
		_ = conn.Close()
	}
}
