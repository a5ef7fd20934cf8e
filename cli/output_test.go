package cli

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	yaml "go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

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
	w.mustRun("reserve", "--gpus", "1", "--pool", "lab", "--at", "mon 09:00", "--for", "1h", "--every", "daily", "--name",
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
	require.Equal(t, ExitInterrupt, Execute(ctx, root))
	require.NoError(t, <-ended)
	require.Equal(t, []string{"pool.created", "user.created"}, seen[len(seen)-2:])
}

// decodeJSON reads JSON.
func decodeJSON(t *testing.T, text []byte, to any) {
	t.Helper()
	require.NoError(t, json.Unmarshal(text, to))
}

// Nothing that a server says can steer a terminal.
func TestTablesShowNoControlCharacters(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		for _, r := range plainText(rapid.String().Draw(t, "text")) {
			if steersTerminal(r) {
				t.Fatalf("%q steers", r)
			}
		}
	})
}

func TestWhen(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	now := time.Date(2026, 3, 6, 13, 0, 0, 0, time.UTC) // a Friday, 14:00 in Berlin
	for text, want := range map[string]string{
		"now": "2026-03-06T14:00:00+01:00", "in 2h": "2026-03-06T16:00:00+01:00", "in 1d": "2026-03-07T14:00:00+01:00",
		"15:30": "2026-03-06T15:30:00+01:00", "09:00": "2026-03-07T09:00:00+01:00",
		"today 13:00":    "2026-03-06T13:00:00+01:00",
		"tomorrow 09:00": "2026-03-07T09:00:00+01:00", "fri 15:00": "2026-03-06T15:00:00+01:00",
		"Friday 13:00": "2026-03-13T13:00:00+01:00",
		"mon 09:00":    "2026-03-09T09:00:00+01:00", "2026-07-01 09:00": "2026-07-01T09:00:00+02:00",
		"2026-03-29 04:00":          "2026-03-29T04:00:00+02:00",
		"2027-10-31 02:30":          "2027-10-31T02:30:00+02:00",
		"2026-03-29 02:30":          "2026-03-29T03:30:00+02:00", // twice the first; never: as schedules shift it
		"2027-10-31T02:30:00+01:00": "2027-10-31T02:30:00+01:00",
		"2026-07-01T09:00:00Z":      "2026-07-01T11:00:00+02:00", "2026-07-01T09:00": "2026-07-01T09:00:00+02:00",
	} {
		got, err := parseTime(text, now, berlin)
		require.NoError(t, err, text)
		require.Equal(t, want, got.In(berlin).Format(time.RFC3339), text)
	}
	for _, text := range []string{"", "soon", "25:00", "tomorrow", "frisday 10:00", "in -2h", "in 2",
		"2026-13-01 09:00", "monday monday"} {
		_, err := parseTime(text, now, berlin)
		require.Error(t, err, text)
	}
}

func TestMoneyAndDurations(t *testing.T) {
	t.Parallel()
	for amount, want := range map[string]string{"": "$0.00", "4": "$4.00", "4.2": "$4.20", "0.000001": "<$0.01",
		"12.345678": "$12.35"} {
		require.Equal(t, want, formatMoney(contract.Money{Amount: amount}), amount)
	}
	for d, want := range map[time.Duration]string{0: "0s", 90 * time.Minute: "1h30m", 2 * time.Hour: "2h",
		24 * time.Hour: "24h", 72 * time.Hour: "3d", 61 * time.Second: "1m1s", 500 * time.Millisecond: "0.5s"} {
		require.Equal(t, want, formatDuration(d))
	}
}
