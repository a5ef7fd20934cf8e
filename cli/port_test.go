package cli

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/cli/exit"
)

// Who forwards a port reads why it does not work, without the words of the layers between.
func TestPortSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	w := newAttachedTower(t)
	busy, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = busy.Close() }()
	_, port, _ := net.SplitHostPort(busy.Addr().String())
	_, errs, code := w.runCommand("port", "heron", port+":9")
	require.Equal(t, exit.Conflict, code)
	require.Contains(t, errs, "Error: port "+port+" of this machine is in use: choose another, or 0 for any that is "+
		"free\n")

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	said, say := io.Pipe()
	told, tell := io.Pipe()
	root := w.newRoot()
	root.SetArgs([]string{"port", "heron", "0:9"})
	root.SetOut(say)
	root.SetErr(tell)
	ended := make(chan int, 1)
	go func() { ended <- Execute(ctx, root) }()
	line, err := bufio.NewReader(said).ReadString('\n')
	require.NoError(t, err)
	address, _, _ := strings.Cut(line, " ")
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	line, err = bufio.NewReader(told).ReadString('\n')
	require.NoError(t, err)
	require.Regexp(t, `^forewarm: nothing (of this allocation )?listens on port 9 of the node's loopback interface\n$`,
		line)
	cancel()
	require.Zero(t, <-ended)
}

// What listens for an allocation ends with it, as a command there does: nobody connects, and nothing is in between.
func TestPortEndsWithItsAllocation(t *testing.T) {
	t.Parallel()
	w := newAttachedTower(t)
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- w.server.Run(ctx) }()
	defer func() {
		cancel()
		require.NoError(t, <-ran)
	}()
	said, say := io.Pipe()
	var errs bytes.Buffer
	root := w.newRoot()
	root.SetArgs([]string{"port", "heron", "0:9"})
	root.SetOut(say)
	root.SetErr(&errs)
	ended := make(chan int, 1)
	go func() { ended <- Execute(ctx, root) }()
	line, err := bufio.NewReader(said).ReadString('\n')
	require.NoError(t, err)
	id := w.mustRun("allocations", "show", "heron", "-o", "name")
	w.mustRun("release", "heron")
	select {
	case code := <-ended:
		require.Equal(t, exit.Conflict, code)
	case <-time.After(time.Minute):
		require.Fail(t, "it goes on")
	}
	require.Regexp(t, "^Error: "+strings.TrimSpace(id)+" was released by [a-z]+\n", errs.String())
	address, _, _ := strings.Cut(line, " ")
	_, err = net.Dial("tcp", address)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
}
