package sqlledger

import (
	"bytes"
	"context"
	"database/sql/driver"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/ledger"
)

// TestALostRaceIsNotLogged: two servers that decide about one pool lose races all
// day, as they should, and log no line about it. A real failure is one line,
// however long its statement.
func TestALostRaceIsNotLogged(t *testing.T) {
	t.Parallel()
	var lines bytes.Buffer
	l := newLogger(slog.New(slog.NewTextHandler(&lines, nil)))
	failed := func(err error) {
		l.Trace(t.Context(), time.Time{}, func() (string, int64) { return "UPDATE\n\t\ttasks\n\t\tSET x", 0 }, err)
	}
	for _, race := range []error{ledger.ErrStale, ledger.ErrConflict, ledger.ErrTaken, ledger.ErrFenced,
		ledger.ErrBusy} {
		failed(wrapError("checking what is remembered of pools", race))
	}
	require.Empty(t, lines.String())
	failed(errors.New("no such\ncolumn"))
	require.Contains(t, lines.String(), `statement="UPDATE tasks SET x"`)
	require.Contains(t, lines.String(), "level=ERROR")
}

// TestWhoGaveUpIsNoError: a connection that was closed for that, or for something else, fails in the same words.
func TestWhoGaveUpIsNoError(t *testing.T) {
	t.Parallel()
	var lines bytes.Buffer
	l := newLogger(slog.New(slog.NewTextHandler(&lines, &slog.HandlerOptions{Level: slog.LevelDebug})))
	ctx, giveUp := context.WithCancel(t.Context())
	failed := func() string {
		lines.Reset()
		l.Trace(ctx, time.Time{}, func() (string, int64) { return "UPDATE tasks", 0 }, driver.ErrBadConn)
		return lines.String()
	}
	require.Contains(t, failed(), "level=ERROR")
	giveUp()
	require.Contains(t, failed(), "level=DEBUG")
}
