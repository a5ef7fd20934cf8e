package daemon

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// A log tells a process that was asked to end from one that died.
func TestTheEndIsLogged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var lines bytes.Buffer
		a := &app{log: slog.New(slog.NewTextHandler(&lines, nil))}
		ctx, cancel := context.WithCancelCause(t.Context())
		over := a.tellEnd(ctx)
		require.Empty(t, lines.String())
		cancel(errors.New("terminated"))
		synctest.Wait()
		require.Contains(t, lines.String(), "cause=terminated")
		over()
		require.Equal(t, 2, strings.Count(lines.String(), "level=INFO"))
		require.Contains(t, lines.String(), "stopped")
	})
}
