package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/server/problem"
)

// newInterruptibleContext is a context that ends as if a signal had come.
func newInterruptibleContext(t *testing.T, s syscall.Signal) (context.Context, func()) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	return ctx, func() { cancel(&exit.Interrupted{Signal: s}) }
}

// Nobody answers a question: a signal ends it at once, and nothing is done.
func TestSignalsEndQuestions(t *testing.T) {
	t.Parallel()
	for s, code := range map[syscall.Signal]int{syscall.SIGINT: exit.Interrupt, syscall.SIGTERM: exit.Terminated} {
		w := newTown(t)
		id := w.mustRun("key", "create", "ci", "-o", "name")
		w.terminal = true
		for _, args := range [][]string{{"key", "revoke", id}, {"login"}} {
			ctx, interrupt := newInterruptibleContext(t, s)
			silent, typed := io.Pipe()
			t.Cleanup(func() { _ = typed.Close() })
			root := w.newRoot()
			if args[0] == "login" {
				w.env["FOREWARM_API_KEY"] = ""
			}
			root.SetArgs(args)
			root.SetIn(silent)
			root.SetOut(io.Discard)
			root.SetErr(onWrite(func(text string) {
				if strings.HasSuffix(text, ": ") || strings.HasSuffix(text, "? [y/N] ") {
					interrupt()
				}
			}))
			require.Equal(t, code, Execute(ctx, root), "%v", args)
		}
		w.env["FOREWARM_API_KEY"] = w.secret
		require.Contains(t, w.mustRun("key", "list"), id)
		require.NotContains(t, w.mustRun("events"), "key.revoked")
	}
}

// While the server is at work on a change, an interruption says that it may have
// been done; while it only reads there is nothing to say.
func TestSignalsEndRequests(t *testing.T) {
	t.Parallel()
	for args, says := range map[string]string{"apply pln_1": "it may have carried out the request", "plan show " +
		"pln_1": ""} {
		w := newTown(t)
		ctx, interrupt := newInterruptibleContext(t, syscall.SIGINT)
		s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			interrupt()
			<-r.Context().Done()
		}))
		w.env["FOREWARM_API"] = s.URL
		_, errs, code := w.runWithContext(ctx, strings.Fields(args)...)
		s.Close()
		require.Equal(t, exit.Interrupt, code, args)
		require.Contains(t, errs, says, args)
		require.Equal(t, says == "", errs == "", errs)
	}
}

func TestSignalContext(t *testing.T) { //nolint:paralleltest // the signal is the whole process's
	ctx, stop := SignalContext(context.Background())
	defer stop()
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGTERM))
	<-ctx.Done()
	require.Equal(t, exit.Terminated, exit.InterruptCode(ctx))
	require.ErrorIs(t, context.Cause(ctx), context.Canceled)
	var i *exit.Interrupted
	require.True(t, errors.As(context.Cause(ctx), &i))
	require.Equal(t, syscall.SIGTERM, i.Signal)
}

// firstAnswer has the first request answered by write, and the rest by the server.
func (w *town) firstAnswer(write func(http.ResponseWriter)) {
	asked, real := false, w.server
	s := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if !asked {
			asked = true
			write(out)
			return
		}
		real.ServeHTTP(out, r)
	}))
	w.t.Cleanup(s.Close)
	w.env["FOREWARM_API"] = s.URL
}

// A server that asks to wait is asked again.
func TestBusyServer(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.firstAnswer(func(out http.ResponseWriter) {
		out.Header().Set("Retry-After", "2")
		out.WriteHeader(http.StatusTooManyRequests)
	})
	before := w.clock.Now()
	out, errs, code := w.runCommand("org", "list", "-o", "name")
	require.Zero(t, code, errs)
	require.NotEmpty(t, out)
	require.Equal(t, "The server is busy; trying again in 2s.\n", errs)
	require.Equal(t, "2s", w.clock.Now().Sub(before).String())
}

// Nor is one called busy that limits how fast a key may ask: the key asks too fast.
func TestALimitedKeyIsNotToldThatTheServerIsBusy(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.firstAnswer(func(out http.ResponseWriter) {
		out.Header().Set("Retry-After", "1")
		out.WriteHeader(http.StatusTooManyRequests)
		_, _ = out.Write([]byte(`{"code":"` + contract.CodeRateLimited + `"}`))
	})
	_, errs, code := w.runCommand("org", "list", "-o", "name")
	require.Zero(t, code, errs)
	require.Equal(t, "Too many requests at once; trying again in 1s, and so on as often as needed.\n", errs)
}

// One whose database is away is not called busy.
func TestAServerWithoutItsDatabaseIsNotCalledBusy(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.firstAnswer(func(out http.ResponseWriter) {
		p := problem.New(contract.CodeUnavailable, "")
		p.RetryAfter = 1
		p.Write(out)
	})
	_, errs, code := w.runCommand("org", "list", "-o", "name")
	require.Zero(t, code, errs)
	require.Equal(t, "The server's database does not answer; trying again in 1s.\n", errs)
}

// What a server says cannot steer a terminal, in any format that people read,
// and stays the same value in those that programs read.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	const hostile = "a\u202egpj\u009b31mz\U000e0041"
	s := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		x := contract.Allocation{ID: "alc_1", Name: hostile, State: "pending", Reason: hostile}
		if r.URL.Path == "/v1/allocations" {
			_ = output.WriteJSONLine(out, contract.List[contract.Allocation]{Items: []contract.Allocation{x}})
			return
		}
		_ = output.WriteJSONLine(out, x)
	}))
	t.Cleanup(s.Close)
	w.env["FOREWARM_API"] = s.URL
	for _, form := range output.Formats {
		for _, args := range [][]string{{"allocations", "list"}, {"allocations", "show", "alc_1"}} {
			out := w.mustRun(append(args, "-o", form)...)
			require.Negative(t, strings.IndexFunc(strings.ReplaceAll(out, "\n", ""), format.SteersTerminal), "%s: %q",
				form, out)
			if form != output.Name {
				require.Contains(t, out, `a\u202egpj`, form)
			}
		}
	}
	var again []struct{ Name string }
	decodeJSON(t, []byte(w.mustRun("allocations", "list", "-o", "json")), &again)
	require.Equal(t, hostile, again[0].Name)
	var screen bytes.Buffer
	root := w.newRoot()
	root.SetErr(&screen)
	printError(root, &exit.Error{Message: "no\x1b]0;owned\x07", Detail: []string{"\x1b[2J"}, Next: []string{"\u202e"}})
	require.Negative(t, strings.IndexFunc(strings.ReplaceAll(screen.String(), "\n", ""), format.SteersTerminal), "%q",
		screen.String())
}
