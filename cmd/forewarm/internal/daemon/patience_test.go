package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/ledger"
)

var errAway = fmt.Errorf("knocking: %w", ledger.ErrUnavailable)

// Waiting knocks ever less often, says so once in a while, and ends as soon as
// the service answers.
func TestAwaitWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var lines bytes.Buffer
		var missing string
		s := service{name: "it", log: slog.New(slog.NewTextHandler(&lines, nil)),
			missing: func(what string) { missing = what }}
		began, tries := time.Now(), 0
		require.NoError(t, forever.awaitService(t.Context(), s, func(context.Context) error {
			if tries++; time.Since(began) < 5*time.Minute {
				return errAway
			}
			return nil
		}))
		require.Equal(t, "it", missing)
		require.Less(t, time.Since(began), 5*time.Minute+longPause)
		require.Greater(t, tries, 60, "a pause is at most five seconds")
		require.Less(t, tries, 150, "and grows to them")
		require.InDelta(t, 10, strings.Count(lines.String(), "waiting for it"), 1)
		require.Contains(t, lines.String(), "found it")
	})
}

func TestAwaitEnds(t *testing.T) {
	t.Parallel()
	final := errors.New("the password is wrong")
	for name, c := range map[string]struct {
		patience patience
		answer   error
		after    time.Duration
		says     string
	}{
		"an answer is final": {forever, final, 0, final.Error()},
		"nobody answers": {0, fmt.Errorf("%w: %w", errAway, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}), 0,
			"it cannot be reached: no server answers at its address (connection refused); start it, or correct its URL"},
		"no patience": {0, errAway, 0, "it cannot be reached: knocking"},
		"patience is over": {patience(7 * time.Second), errAway, 7 * time.Second,
			"it cannot be reached after 7s: knocking"},
		"a time-out is no answer": {patience(time.Second), context.DeadlineExceeded, time.Second,
			"cannot be reached after 1s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				err := c.patience.awaitService(t.Context(), service{name: "it", log: slog.New(slog.DiscardHandler)},
					func(context.Context) error { return c.answer })
				require.ErrorContains(t, err, c.says)
				require.Equal(t, c.after, time.Since(began))
			})
		})
	}
}

// Who swallows what is sent is knocked at again, and whoever waits can be told to
// end at any moment.
func TestAwaitIsInterrupted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		told := errors.New("told to end")
		ctx, cancel := context.WithCancelCause(t.Context())
		tries := 0
		time.AfterFunc(25*time.Second, func() { cancel(told) })
		began := time.Now()
		err := forever.awaitService(ctx, service{name: "it", log: slog.New(slog.DiscardHandler)},
			func(ctx context.Context) error {
				tries++
				<-ctx.Done()
				return ctx.Err()
			})
		require.ErrorIs(t, err, told)
		require.Equal(t, 25*time.Second, time.Since(began))
		require.Equal(t, 3, tries)
	})
}

func TestPatienceIsAFlag(t *testing.T) {
	t.Parallel()
	p := forever
	require.Equal(t, "forever", p.String())
	require.NoError(t, p.Set("90s"))
	require.Equal(t, "1m30s", p.String())
	require.NoError(t, p.Set("forever"))
	require.Equal(t, forever, p)
	for _, bad := range []string{"-1s", "soon", "", "9"} {
		require.ErrorContains(t, p.Set(bad), "duration", bad)
	}
}

// While it waits a process lives, is not ready, and says what is missing.
func TestTheFrontSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	f := newFront()
	f.setMissing("the database at postgres://db/name")
	for path, want := range map[string]struct {
		code int
		says string
	}{
		"/healthz": {200, "ok"}, "/readyz": {503, "waiting for the database at postgres://db/name"},
		"/v1/pools": {503, `"code":"store-unavailable"`},
	} {
		w := httptest.NewRecorder()
		f.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", path, nil))
		require.Equal(t, want.code, w.Code, path)
		require.Contains(t, w.Body.String(), want.says, path)
		require.Equal(t, want.code == 503, w.Header().Get("Retry-After") != "", path)
	}
}
