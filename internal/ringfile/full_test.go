//go:build unix

package ringfile_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/forewarm/forewarm/internal/ringfile"
)

// boundFiles lets this process write files of so many bytes only.
func boundFiles(t *testing.T, bytes uint64) {
	t.Helper()
	var was unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_FSIZE, &was))
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: bytes, Max: was.Max}))
	t.Cleanup(func() { require.NoError(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &was)) })
}

// A disk that is full costs the records that it has no room for, and gets no more files with each of them.
func TestADiskThatIsFull(t *testing.T) { //nolint:paralleltest // the bound is the process's
	folder := t.TempDir()
	r, err := ringfile.Open(folder, "cycles", 1<<20)
	require.NoError(t, err)
	require.NoError(t, r.Add([]byte(`{"n":0}`), noon))
	t.Run("full", func(t *testing.T) { //nolint:paralleltest // as above
		boundFiles(t, uint64(sizeOf(t, folder))+10) //nolint:gosec // small
		require.ErrorIs(t, r.Add([]byte(`{"n":1}`), noon), unix.EFBIG, "it is written in part")
		boundFiles(t, 10)
		for i := range 5 {
			require.ErrorIs(t, r.Add([]byte(`{"n":2}`), noon.Add(time.Duration(i)*time.Second)), unix.EFBIG)
		}
		files, err := os.ReadDir(folder)
		require.NoError(t, err)
		require.Len(t, files, 1)
	})
	require.NoError(t, r.Add([]byte(`{"n":3}`), noon.Add(time.Minute)))
	require.NoError(t, r.Close())
	all, err := readAll(t, folder)
	require.NoError(t, err)
	require.Equal(t, []string{"{\"n\":0}\n", "{\"n\":3}\n"}, all)
}
