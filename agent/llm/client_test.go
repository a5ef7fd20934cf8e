package llm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/agent/llm"
	"github.com/forewarm/forewarm/agent/llm/scripted"
	"github.com/forewarm/forewarm/internal/obs"
)

const canary = "sk-canary-0123456789"

var ask = llm.Request{
	System: "rules", SchemaName: "forecast", Schema: json.RawMessage(`{"type":"object"}`), MaxTokens: 500,
	User: "Statistics:\nwindow start=2026-01-05T09:00:00Z end=2026-01-05T10:00:00Z p10=1 p50=4 p90=8 " +
		"any=0.820\n\nLog lines:\n",
}

func newClient(t testing.TB, handler http.Handler) *llm.Client {
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	c, err := llm.NewClient(llm.Config{BaseURL: server.URL + "/v1/", Model: "m", Key: obs.NewSecret(canary)},
		server.Client())
	require.NoError(t, err)
	return c
}

func TestClientAsksStrictlyAndWithoutTools(t *testing.T) {
	t.Parallel()
	var path, authorization string
	var body map[string]any
	c := newClient(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, authorization = r.URL.Path, r.Header.Get("Authorization")
		_ = json.NewDecoder(r.Body).Decode(&body)
		_, _ = fmt.Fprint(w,
			`{"model":"m1","choices":[{"message":{"role":"assistant","content":"{}"},"finish_reason":"stop"}],`+
				`"usage":{"prompt_tokens":7,"completion_tokens":2}}`)
	}))
	reply, err := c.Ask(t.Context(), ask)
	require.NoError(t, err)
	require.Equal(t, llm.Reply{Text: "{}", Model: "m1", PromptTokens: 7, CompletionTokens: 2}, reply)
	require.Equal(t, "/v1/chat/completions", path)
	require.Equal(t, "Bearer "+canary, authorization)
	require.NotContains(t, body, "tools")
	require.Equal(t, 500.0, body["max_tokens"])
	format, err := json.Marshal(body["response_format"])
	require.NoError(t, err)
	require.JSONEq(t,
		`{"type":"json_schema","json_schema":{"name":"forecast","strict":true,"schema":{"type":"object"}}}`,
		string(format))
}

func TestScriptedServerIsDeterministicAndSaysWhatItIs(t *testing.T) {
	t.Parallel()
	c := newClient(t, &scripted.Server{})
	first, err := c.Ask(t.Context(), ask)
	require.NoError(t, err)
	second, err := c.Ask(t.Context(), ask)
	require.NoError(t, err)
	require.Equal(t, first, second)
	require.Equal(t, "scripted-sim", first.Model)
	require.JSONEq(t, `{"records":[{"start":"2026-01-05T09:00:00Z","end":"2026-01-05T10:00:00Z",
		"gpus_low":1,"gpus_mid":4,"gpus_high":8,"probability":0.82,"reason_code":"recurring"}]}`, first.Text)
}

func TestFailuresAreTypedAndQuoteNothing(t *testing.T) {
	t.Parallel()
	for mode, want := range map[scripted.Mode]llm.Kind{
		scripted.Refuse: llm.KindRefused, scripted.Tool: llm.KindInvalid, scripted.CutOff: llm.KindInvalid,
		scripted.Throttle: llm.KindThrottled, scripted.Broken: llm.KindUnavailable, scripted.Denied: llm.KindDenied,
		scripted.Flood: llm.KindInvalid, scripted.NotJSON: llm.KindInvalid,
	} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			server := &scripted.Server{Mode: mode}
			_, err := newClient(t, server).Ask(t.Context(), ask)
			require.Equal(t, want, llm.KindOf(err), "%v", err)
			require.Equal(t, int64(1), server.Calls(), "one call, no hidden retry")
			for _, secret := range []string{canary, "slow down", "it broke", "wrong key", "welcome", "rather not",
				"1000"} {
				require.NotContains(t, err.Error(), secret)
			}
			var e *llm.Error
			require.ErrorAs(t, err, &e)
			if mode == scripted.Throttle {
				require.Equal(t, 17*time.Second, e.RetryAfter)
				require.Equal(t, http.StatusTooManyRequests, e.Status)
			}
		})
	}
}

func TestASlowModelEndsWithTheContext(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{})
	slow := &scripted.Server{Mode: scripted.Slow}
	c := newClient(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(arrived)
		slow.ServeHTTP(w, r)
	}))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-arrived
		cancel()
	}()
	_, err := c.Ask(ctx, ask)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, llm.KindUnavailable, llm.KindOf(err))
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	for _, c := range []llm.Config{
		{}, {BaseURL: "localhost:1", Model: "m"}, {BaseURL: "file:///x", Model: "m"}, {BaseURL: "http://h/v1"},
		{BaseURL: "http://user:pw@h/v1", Model: "m"}, {BaseURL: "http://h/v1?key=1", Model: "m"},
		{BaseURL: "http://h", Model: "m", TokensField: "tokens"},
	} {
		_, err := llm.NewClient(c, http.DefaultClient)
		require.Error(t, err)
		require.NotContains(t, err.Error(), "pw")
	}
	require.NotContains(t, fmt.Sprintf("%+v", llm.Config{Key: obs.NewSecret(canary)}), canary)
}
