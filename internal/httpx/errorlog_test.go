package httpx_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/httpx"
	"github.com/forewarm/forewarm/internal/obs"
)

// fullListener fails to accept three times, as a process without descriptors does, and then for good.
type fullListener struct {
	net.Listener
	times int
}

func (l *fullListener) Accept() (net.Conn, error) {
	if l.times++; l.times > 3 {
		return nil, net.ErrClosed
	}
	return nil, noDescriptors{errors.New("accept tcp: too many open files")}
}

type noDescriptors struct{ error }

func (noDescriptors) Timeout() bool   { return false }
func (noDescriptors) Temporary() bool { return true }

func TestWhatNetHTTPSaysIsLogged(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var out bytes.Buffer
	srv := httpx.NewServer("", http.NotFoundHandler())
	srv.ErrorLog = httpx.NewErrorLog(obs.NewLogger(&out, obs.Config{Format: obs.JSON}))
	require.ErrorIs(t, srv.Serve(&fullListener{Listener: l}), net.ErrClosed)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 1, "the same is held back")
	var line map[string]any
	require.NoError(t, json.Unmarshal([]byte(lines[0]), &line))
	require.Equal(t, "WARN", line["level"])
	require.Equal(t, "HTTP server: Accept error: accept tcp: too many open files", line["msg"])
}
