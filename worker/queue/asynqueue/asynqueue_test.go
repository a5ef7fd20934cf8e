package asynqueue

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hibiken/asynq"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/internal/leaktest"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/worker/queue"
)

func TestMain(m *testing.M) { leaktest.VerifyTestMain(m) }

func TestConfigDefaultsAreValid(t *testing.T) {
	t.Parallel()
	cfg := Config{URL: obs.NewSecret("redis://localhost:6379/0")}.WithDefaults()
	require.NoError(t, cfg.Validate())
	require.Equal(t, "forewarm", cfg.Namespace)
	require.Equal(t, 10*time.Minute, cfg.Timeout)
}

func TestConfigNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		spoil func(*Config)
		says  string
	}{
		"no URL":             {func(c *Config) { c.URL = obs.Secret{} }, "redis://"},
		"another scheme":     {func(c *Config) { c.URL = obs.NewSecret("http://localhost") }, "redis://"},
		"namespace":          {func(c *Config) { c.Namespace = "a b" }, "namespace"},
		"namespace injected": {func(c *Config) { c.Namespace = "a}:{b" }, "namespace"},
		"negative timeout":   {func(c *Config) { c.Timeout = -time.Second }, "timeout"},
		"part of a second":   {func(c *Config) { c.Timeout = 1500 * time.Millisecond }, "timeout"},
		"negative poll":      {func(c *Config) { c.PollInterval = -1 }, "poll interval"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := Config{URL: obs.NewSecret("redis://localhost:6379/0")}.WithDefaults()
			tc.spoil(&cfg)
			require.ErrorContains(t, cfg.Validate(), tc.says)
			_, err := New(cfg)
			require.ErrorContains(t, err, tc.says)
		})
	}
}

func TestThePasswordIsNeverPrinted(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"redis://user:hunter2@localhost:notaport/0",
		"redis://user:hunter2/x@localhost:6379/0",
		"redis://user:hunter2@localhost:6379/nodb",
		"redis://user:hunter2%zz@localhost:6379/0",
		"http://user:hunter2@localhost/",
	} {
		_, err := New(Config{URL: obs.NewSecret(url)})
		require.Error(t, err, url)
		require.NotContains(t, err.Error(), "hunter2")
	}
	cfg := Config{URL: obs.NewSecret("redis://user:hunter2@localhost:6379/0")}
	require.NotContains(t, fmt.Sprintf("%v %+v %#v", cfg, cfg, &cfg), "hunter2")
}

func TestRunFailsWithoutRedis(t *testing.T) {
	t.Parallel()
	var lines bytes.Buffer
	q, err := New(Config{
		URL:    obs.NewSecret("redis://user:hunter2@" + closedPort(t) + "/0"),
		Logger: slog.New(slog.NewTextHandler(&lines, nil)),
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, q.Close()) }()

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err = q.Run(ctx, 1, func(context.Context, queue.Message) { t.Error("nothing can be delivered") })
	require.ErrorContains(t, err, "reaching Redis")
	require.NoError(t, ctx.Err(), "it must say so before the deadline")
	require.Error(t, q.Enqueue(ctx, queue.Message{TaskID: "tsk_1"}))
	require.NotContains(t, err.Error()+lines.String(), "hunter2")
}

// closedPort returns a local address that refuses connections.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return l.Addr().String()
}

func TestMessagesSurviveTheWire(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := queue.Message{
			TaskID:  rapid.StringN(1, 40, -1).Draw(t, "id"),
			Kind:    rapid.String().Draw(t, "kind"),
			Attempt: rapid.IntRange(0, 1<<40).Draw(t, "attempt"),
			Epoch:   rapid.IntRange(0, 1<<40).Draw(t, "epoch"),
		}
		payload, err := encodeMessage(want)
		require.NoError(t, err)
		got, err := decodeMessage(payload)
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
}

func TestDecodeRefusesWhatIsNotOurs(t *testing.T) {
	t.Parallel()
	for _, payload := range []string{
		"", "null", "{}", "[]", "garbage", `"tsk_1"`, `{"task_id":"tsk_1"`,
		`{"task_id":"tsk_1","kind":"k","attempt":0,"epoch":0} x`,
		`{"task_id":"tsk_1","kind":"k","attempt":0,"epoch":0}{}`,
		`{"task_id":"tsk_1","kind":"k","attempt":0,"epoch":0,"secret":"x"}`,
		`{"task_id":"","kind":"k","attempt":0,"epoch":0}`,
		`{"task_id":"tsk_1","kind":"k","attempt":-1,"epoch":0}`,
		`{"task_id":"tsk_1","kind":"k","attempt":0,"epoch":-1}`,
		`{"task_id":"tsk_1","kind":"k","attempt":1.5,"epoch":0}`,
		`{"task_id":7,"kind":"k","attempt":0,"epoch":0}`,
	} {
		_, err := decodeMessage([]byte(payload))
		require.Error(t, err, "payload %q", payload)
	}
}

func TestGarbageIsDroppedWithALogLine(t *testing.T) {
	t.Parallel()
	var lines bytes.Buffer
	handler := func(context.Context, queue.Message) { t.Error("garbage must not reach the handler") }
	d := newDelivery(t.Context(), 1, handler, slog.New(slog.NewTextHandler(&lines, nil)))
	require.NoError(t, d.ProcessTask(t.Context(), asynq.NewTask("other", []byte(`{"password":"hunter2"}`))))
	require.Contains(t, lines.String(), "dropped a message")
	require.NotContains(t, lines.String(), "hunter2")
}

func TestTaskIDsDifferByAttemptAndEpoch(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for attempt := range 3 {
		for epoch := range 3 {
			seen[taskID(queue.Message{TaskID: "tsk_1", Kind: "k", Attempt: attempt, Epoch: epoch})] = true
		}
	}
	require.Len(t, seen, 9)
	require.Contains(t, seen, "tsk_1:1:2")
}

func TestEnqueueRefusesAMessageWithoutTask(t *testing.T) {
	t.Parallel()
	_, err := encodeMessage(queue.Message{Kind: "k"})
	require.Error(t, err)
}

// While Redis is away asynq's loops complain without end: one line a minute is
// enough, and none is an error, as nothing is lost.
func TestAsynqComplainsOnceAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var lines bytes.Buffer
		b := &bridge{log: slog.New(slog.NewTextHandler(&lines, nil))}
		for range 10 {
			b.Error("Dequeue error: UNKNOWN:\nrefused")
			b.Warn("recoverer: refused")
		}
		require.Equal(t, 1, strings.Count(lines.String(), "\n"), lines.String())
		require.Contains(t, lines.String(), `level=WARN`)
		require.Contains(t, lines.String(), `UNKNOWN: refused`)
		time.Sleep(quiet)
		b.Fatal("still away")
		require.Contains(t, lines.String(), "still away")
	})
}
