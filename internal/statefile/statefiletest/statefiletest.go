// Package statefiletest makes writing a state file fail, even for root, whom
// permissions do not stop.
package statefiletest

import (
	"errors"
	"io/fs"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// Block puts a folder in the file's place, so that no file can replace it, until
// the returned function puts the file back.
func Block(t *testing.T, path string) (unblock func()) {
	t.Helper()
	aside := path + ".aside"
	err := os.Rename(path, aside)
	had := err == nil
	if !errors.Is(err, fs.ErrNotExist) {
		require.NoError(t, err)
	}
	require.NoError(t, os.Mkdir(path, 0o700))
	return func() {
		t.Helper()
		require.NoError(t, os.Remove(path))
		if had {
			require.NoError(t, os.Rename(aside, path))
		}
	}
}
