package bpf_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/forewarm/forewarm/node/bpf"
)

// The kernel gives up checking a program when a signal comes, which is no reason for a holder to be refused.
func TestLoadingIsTriedAgainWhenASignalCame(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ interrupted, tries int }{{0, 1}, {3, 4}, {1 << 20, 100}} {
		tries := 0
		filter, err := bpf.Retry(func() (int, error) {
			if tries++; tries <= c.interrupted {
				return 0, unix.EAGAIN
			}
			return 7, nil
		})
		require.Equal(t, c.tries, tries)
		if c.interrupted > c.tries {
			require.ErrorIs(t, err, unix.EAGAIN)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, 7, filter)
	}
	tries := 0
	_, err := bpf.Retry(func() (int, error) { tries++; return 0, unix.EPERM })
	require.ErrorIs(t, err, unix.EPERM)
	require.Equal(t, 1, tries)
}
