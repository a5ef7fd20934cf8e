package obs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/obs"
)

func TestLogLinesCarryTheContextsAttributes(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := obs.NewLogger(&out, obs.Config{Format: obs.JSON}).With("part", "server")
	ctx := obs.WithAttrs(t.Context(), slog.String("request_id", "req_1"))
	inner := obs.WithAttrs(ctx, slog.String("task_id", "tsk_1"), slog.String("request_id", "req_2"))

	for _, tc := range []struct {
		ctx  context.Context
		want map[string]any
	}{
		{inner, map[string]any{"part": "server", "task_id": "tsk_1", "request_id": "req_2"}},
		{ctx, map[string]any{"part": "server", "request_id": "req_1"}},
		{t.Context(), map[string]any{"part": "server"}},
	} {
		out.Reset()
		log.InfoContext(tc.ctx, "hello")
		got := map[string]any{}
		require.NoError(t, json.Unmarshal(out.Bytes(), &got))
		delete(got, "time")
		tc.want["level"], tc.want["msg"] = "INFO", "hello"
		require.Equal(t, tc.want, got)
	}
}

func TestSiblingContextsDoNotShareAttributes(t *testing.T) {
	t.Parallel()
	parent := obs.WithAttrs(t.Context(), slog.Int("a", 1), slog.Int("b", 2), slog.Int("c", 3))
	left := obs.WithAttrs(parent, slog.Int("a", 10))
	right := obs.WithAttrs(parent, slog.Int("d", 4))
	require.Equal(t, []slog.Attr{slog.Int("a", 1), slog.Int("b", 2), slog.Int("c", 3)}, obs.Attrs(parent))
	require.Equal(t, []slog.Attr{slog.Int("b", 2), slog.Int("c", 3), slog.Int("a", 10)}, obs.Attrs(left))
	require.Equal(t, []slog.Attr{slog.Int("a", 1), slog.Int("b", 2), slog.Int("c", 3), slog.Int("d", 4)},
		obs.Attrs(right))
}

func TestLevelsAndFormats(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	config, err := obs.ParseConfig("warn", "text")
	require.NoError(t, err)
	log := obs.NewLogger(&out, config)
	log.Info("quiet")
	require.Empty(t, out.String())
	log.Warn("loud")
	require.Contains(t, out.String(), "level=WARN msg=loud")

	config, err = obs.ParseConfig("", "")
	require.NoError(t, err)
	require.Equal(t, slog.LevelInfo, config.Level)

	_, err = obs.ParseConfig("loud", "text")
	require.ErrorContains(t, err, `log level "loud"`)
	_, err = obs.ParseConfig("info", "xml")
	require.ErrorContains(t, err, `log format "xml"`)
}
