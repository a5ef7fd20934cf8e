package allocation

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/client/session"
	"github.com/forewarm/forewarm/contract"
)

// heldGang is all eight GPUs of the pool, on two nodes that take commands.
func heldGang(t *testing.T) *Held {
	t.Helper()
	_, server := start(t, true)
	r := ask(8)
	r.Layout = contract.Layout{Nodes: 2}
	h, err := Acquire(t.Context(), server, r)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.Release(context.Background())) })
	return h
}

// A command has its streams, its folder, its variables and those of the allocation, which go first.
func TestExec(t *testing.T) {
	t.Parallel()
	h := heldGang(t)
	var errs bytes.Buffer
	c := h.Exec(t.Context(), "sh", "-c", `pwd; cat; echo "$SEED $NODE_RANK"; echo wrong >&2; exit 42`)
	c.Dir, c.Node, c.Stdin, c.Stderr = "/", 1, strings.NewReader("from here\n"), &errs
	c.Env = []string{"SEED=a=b", "NODE_RANK=9"}
	out, err := c.Output()
	require.Equal(t, "/\nfrom here\na=b 1\n", string(out))
	require.Equal(t, "wrong\n", errs.String())
	require.Equal(t, &ExitError{Node: 1, Code: 42}, err)
	require.Subset(t, h.Env(1), []string{"NODE_RANK=1", "WORLD_SIZE=8"})
	require.Nil(t, h.Env(2))

	var ended *session.EndError
	require.ErrorAs(t, h.Exec(t.Context(), "no-such-program").Run(), &ended)
	c = h.Exec(t.Context(), "true")
	c.Node = 2
	require.ErrorContains(t, c.Run(), "node")
	c = h.Exec(t.Context(), "true")
	c.Env = []string{"=1"}
	require.EqualError(t, c.Run(), `the variable "=1" must be NAME=VALUE`)
}

// A command gets signals while it runs, and is hung up with its context.
func TestACommandIsEnded(t *testing.T) {
	t.Parallel()
	h := heldGang(t)
	begin := func(ctx context.Context) *Cmd {
		c := h.Exec(ctx, "sh", "-c", "trap 'exit 9' USR1; echo up; while :; do sleep 0.01; done")
		said, write := io.Pipe()
		c.Stdout = write
		require.Error(t, c.Signal("USR1"), "it was not started")
		require.Error(t, c.Wait())
		require.NoError(t, c.Start())
		require.Error(t, c.Start())
		line := make([]byte, 3)
		_, err := io.ReadFull(said, line)
		require.NoError(t, err)
		return c
	}
	c := begin(t.Context())
	require.NoError(t, c.Signal("USR1"))
	require.Equal(t, &ExitError{Code: 9}, c.Wait())
	require.EqualError(t, c.Signal("USR1"), "the command has ended")
	c = begin(t.Context())
	require.NoError(t, c.Signal("KILL"))
	require.EqualError(t, c.Wait(), "node 0: signal: KILL")

	ctx, cancel := context.WithCancel(t.Context())
	c = begin(ctx)
	cancel()
	require.ErrorIs(t, c.Wait(), context.Canceled)
}

// Of a gang of which one fails nobody is left to wait for it.
func TestAGangFailsTogether(t *testing.T) {
	t.Parallel()
	h := heldGang(t)
	g := h.ExecEach(t.Context(), "sh", "-c", `[ "$NODE_RANK" = 1 ] && exit 5; sleep 1000`)
	require.Equal(t, &ExitError{Node: 1, Code: 5}, g.Run())
}

// What is released takes no more commands.
func TestExecAfterRelease(t *testing.T) {
	t.Parallel()
	h := heldGang(t)
	c := h.Exec(t.Context(), "sleep", "1000")
	require.NoError(t, c.Start())
	require.NoError(t, h.Release(t.Context()))
	require.Error(t, c.Wait())
	require.Error(t, h.Exec(t.Context(), "true").Run())
	require.NoError(t, h.Err())
}
