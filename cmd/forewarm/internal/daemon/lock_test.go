package daemon

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A data directory has one name for ever, and every other one another: a worker
// that is started again goes on with its provisioners at once.
func TestADataDirectoryHasOneName(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, host, err := dataDirID(dir)
	require.NoError(t, err)
	require.NotEmpty(t, host)
	again, _, err := dataDirID(dir)
	require.NoError(t, err)
	require.Equal(t, first, again)
	other, _, err := dataDirID(t.TempDir())
	require.NoError(t, err)
	require.NotEqual(t, first, other)
}
