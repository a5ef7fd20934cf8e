package work_test

import (
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/httpx"
	"github.com/forewarm/forewarm/node/work/worktest"
)

// A holder who takes the port of the control plane, once that has ended, is sent no key.
func TestNoKeyIsSentToAHolder(t *testing.T) {
	t.Parallel()
	users := map[int]bool{httpx.FirstHolder - 1: true, httpx.FirstHolder: false, httpx.LastHolder: false,
		httpx.LastHolder + 1: true}
	if os.Getuid() != 0 { // who can listen as oneself alone, and is no holder
		users = map[int]bool{os.Getuid(): true}
	}
	for user, told := range users {
		l := worktest.ListenAs(t, strconv.Itoa(user))
		var asked atomic.Int32
		s := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(
			func(http.ResponseWriter, *http.Request) { asked.Add(1) })}
		go func() { _ = s.Serve(l) }()
		t.Cleanup(func() { _ = s.Close() })
		_, port, err := net.SplitHostPort(l.Addr().String())
		require.NoError(t, err)
		by, held := httpx.HolderAt(netip.MustParseAddrPort(l.Addr().String()))
		require.Equal(t, !told, held)
		require.True(t, told || by == uint32(user)) //nolint:gosec // it is a user's number
		c := httpx.NewClient(httpx.Config{Transport: httpx.NewGuardedTransport()})
		resp, err := c.Get("http://localhost:" + port)
		if told {
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.EqualValues(t, 1, asked.Load())
			continue
		}
		var refused *httpx.HeldPortError
		require.ErrorAs(t, err, &refused)
		require.Contains(t, refused.Error(), "nothing was sent")
		require.Zero(t, asked.Load())
	}
}
