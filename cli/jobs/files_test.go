package jobs

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Who sends a folder does not send what a link in it points to elsewhere.
func TestLinksStayInTheFolder(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	folder := filepath.Join(base, "work")
	require.NoError(t, os.Mkdir(folder, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "data"), []byte("own"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(base, "key"), []byte("secret"), 0o600))
	require.NoError(t, os.Symlink("data", filepath.Join(folder, "near")))
	found, err := readFiles("work", folder)
	require.NoError(t, err)
	require.Len(t, found, 2)
	require.Equal(t, "own", string(found[1].Data))

	require.NoError(t, os.Symlink("../key", filepath.Join(folder, "far")))
	_, err = readFiles("work", folder)
	require.ErrorContains(t, err, filepath.Join(folder, "far")+" is a link to a file outside of the folder")
	found, err = readFiles("key", filepath.Join(folder, "far"))
	require.NoError(t, err, "a file that is named itself")
	require.Len(t, found, 1)
}
