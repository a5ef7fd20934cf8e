package cli

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/contract"
)

var listed = []string{"allocations list", "reservations list", "schedules list", "pools list", "nodes list", "gpus",
	"events", "key list", "org list", "user list"}

// newFilledTown is a town in which every list has something.
func newFilledTown(t *testing.T) *town {
	t.Helper()
	w := newTown(t)
	w.createPool()
	w.mustRun("allocate", "--gpus", "2", "--pool", "lab", "--wait")
	w.mustRun("reserve", "--gpus", "2", "--pool", "lab", "--at", "in 2h", "--for", "1h")
	w.mustRun("reserve", "--gpus", "1", "--pool", "lab", "--at", "mon 09:00", "--for", "1h", "--every", "daily",
		"--name",
		"daily")
	w.mustRun("user", "create", "ada@example.com", "--role", "member")
	return w
}

func TestMachineFormats(t *testing.T) {
	t.Parallel()
	w := newFilledTown(t)
	for _, command := range listed {
		ask := func(format string) string { return w.mustRun(append(strings.Fields(command), "-o", format)...) }
		var items []map[string]any
		require.NoError(t, json.Unmarshal([]byte(ask("json")), &items), command)
		require.NotEmpty(t, items, command)
		require.Equal(t, ask("json"), ask("json"), command)
		lines := strings.Split(ask("jsonl"), "\n")
		require.Len(t, lines, len(items), command)
		for i, l := range lines {
			var item map[string]any
			require.NoError(t, json.Unmarshal([]byte(l), &item), command)
			require.Equal(t, items[i], item, command)
		}
		var same []map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(ask("yaml")), &same), command)
		require.Len(t, same, len(items), command)
		require.Len(t, strings.Split(ask("name"), "\n"), len(items), command)
		header := strings.Split(ask("table"), "\n")[0]
		require.NotContains(t, w.mustRun(append(strings.Fields(command), "--no-headers")...), header, command)
		require.Contains(t, ask("wide"), strings.Fields(header)[0], command)
	}
}

func TestEmptyListsAreEmptyJSON(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	for _, command := range []string{"allocations list", "reservations list", "schedules list", "pools list",
		"nodes list", "gpus", "user list", "forecasts list"} {
		require.Equal(t, "[]", w.mustRun(append(strings.Fields(command), "-o", "json")...), command)
		out, errs, code := w.runCommand(append(strings.Fields(command), "-q")...)
		require.Empty(t, out+errs, command)
		require.Zero(t, code)
	}
}

func TestIdempotencyKeyHasOneEffect(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.createPool()
	args := []string{"allocate", "--gpus", "1", "--pool", "lab", "--idempotency-key", "once", "-o", "name"}
	require.Equal(t, w.mustRun(args...), w.mustRun(args...))
	require.Len(t, strings.Fields(w.mustRun("allocations", "list", "-o", "name")), 1)
}

// At a terminal the phases are one line that is rewritten.
func TestLivePhases(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.createPool()
	w.terminal = true
	_, errs, code := w.runCommand("allocate", "--gpus", "1", "--pool", "lab", "--wait")
	require.Zero(t, code)
	require.Contains(t, errs, "\r\x1b[K◐ alc_")
	require.Contains(t, errs, "pending  5s")
}

func TestColours(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	red := func(args ...string) bool {
		_, errs, _ := w.runCommand(append(args, "pools", "show", "nothing")...)
		return strings.Contains(errs, "\x1b[31mError:\x1b[0m ")
	}
	require.False(t, red())
	w.terminal = true
	require.True(t, red())
	require.False(t, red("--no-color"))
	w.env["NO_COLOR"] = "1"
	require.False(t, red())
}

// onWrite is a screen that tells of every write to it.
type onWrite func(text string)

func (f onWrite) Write(p []byte) (int, error) {
	f(string(p))
	return len(p), nil
}

// Following shows what was, then what happens, until it is interrupted.
func TestFollow(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.createPool()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.server.Run(ctx) }()
	root := w.newRoot()
	root.SetArgs([]string{"events", "-f", "-o", "jsonl"})
	root.SetErr(io.Discard)
	var seen []string
	root.SetOut(onWrite(func(text string) {
		var e contract.Event
		require.NoError(t, json.Unmarshal([]byte(text), &e))
		seen = append(seen, e.Type)
		switch e.Type {
		case "pool.created":
			w.mustRun("user", "create", "ada@example.com", "--role", "member")
		case "user.created":
			cancel()
		}
	}))
	require.Equal(t, exit.Interrupt, Execute(ctx, root))
	require.NoError(t, <-ended)
	require.Equal(t, []string{"pool.created", "user.created"}, seen[len(seen)-2:])
}

// decodeJSON reads JSON.
func decodeJSON(t *testing.T, text []byte, to any) {
	t.Helper()
	require.NoError(t, json.Unmarshal(text, to))
}
