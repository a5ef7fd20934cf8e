package hold_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/forewarm/forewarm/node/hold"
)

// Work may pin as much memory as the daemon may let it.
func TestWorkMayPinMemory(t *testing.T) {
	var before, after unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_MEMLOCK, &before))
	t.Cleanup(func() { require.NoError(t, unix.Setrlimit(unix.RLIMIT_MEMLOCK, &before)) })
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: 1 << 16, Max: before.Max}))
	require.NoError(t, hold.UnboundPinning())
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_MEMLOCK, &after))
	require.Equal(t, after.Max, after.Cur)
	require.GreaterOrEqual(t, after.Max, before.Max)
}
