package sessions

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// entry is one of an archive that a node made up.
type entry struct {
	kind       byte
	name, text string // of a link, what it names
}

func archiveOf(t *testing.T, entries []entry) io.Reader {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, e := range entries {
		h := &tar.Header{Typeflag: e.kind, Name: e.name, Mode: 0o755}
		if e.kind == tar.TypeReg {
			h.Size = int64(len(e.text))
		} else {
			h.Linkname = e.text
		}
		require.NoError(t, w.WriteHeader(h))
		if e.kind == tar.TypeReg {
			_, err := io.WriteString(w, e.text)
			require.NoError(t, err)
		}
	}
	require.NoError(t, w.Close())
	return &out
}

// A node may answer with any archive: what lies beside what was asked for stays as it is.
func TestAnArchiveStaysInItsPlace(t *testing.T) {
	t.Parallel()
	const file, link, hard, folder = tar.TypeReg, tar.TypeSymlink, tar.TypeLink, tar.TypeDir
	for name, c := range map[string]struct {
		asked, as string
		archive   []entry
	}{
		"a link to above": {"results", "results", []entry{
			{folder, "results/", ""}, {link, "results/l", ".."}, {file, "results/l/.profile", "bad"}}},
		"a link in its place":  {"data", "data", []entry{{link, "data", "."}, {file, "data/.profile", "bad"}}},
		"a file's, too":        {"f", "f2", []entry{{link, "f", "."}, {file, "f/.profile", "bad"}}},
		"a folder over a link": {"data", "data", []entry{{link, "data", "."}, {folder, "data/", ""}}},
		"a way up":             {".", "into", []entry{{file, "../.profile", "bad"}}},
		"from the root":        {".", "into", []entry{{file, "/.profile", "bad"}}},
		"another name":         {"data", "data", []entry{{file, ".profile", "bad"}}},
		"a hard link": {"data", "data", []entry{{folder, "data/", ""},
			{hard, "data/x", ".profile"}, {file, "data/x", "bad"}}},
		"a hard link through a link": {"data", "data", []entry{{folder, "data/", ""},
			{link, "data/l", ".."}, {hard, "data/x", "data/l/.profile"}}},
	} {
		dir := t.TempDir()
		mine := filepath.Join(dir, ".profile")
		require.NoError(t, os.WriteFile(mine, []byte("mine"), 0o600))
		require.Error(t, unpack(archiveOf(t, c.archive), io.Discard, dir, c.asked, c.as), name)
		got, err := os.ReadFile(mine) //nolint:gosec // of the test
		require.NoError(t, err)
		require.Equal(t, "mine", string(got), name)
	}
}

// What a part of a copy that was killed is linked to is not written.
func TestAPartIsMadeAnew(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mine := filepath.Join(dir, ".profile")
	require.NoError(t, os.WriteFile(mine, []byte("mine"), 0o600))
	require.NoError(t, unpack(archiveOf(t, []entry{{tar.TypeSymlink, "f" + partSuffix, mine}, {tar.TypeReg, "f", "new"}}),
		io.Discard, dir, ".", "."))
	got, err := os.ReadFile(mine) //nolint:gosec // of the test
	require.NoError(t, err)
	require.Equal(t, "mine", string(got))
	got, err = os.ReadFile(filepath.Join(dir, "f")) //nolint:gosec // of the test
	require.NoError(t, err)
	require.Equal(t, "new", string(got))
}

// A folder with links of its own arrives whole.
func TestAnArchiveArrives(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, unpack(archiveOf(t, []entry{{tar.TypeDir, "data/", ""}, {tar.TypeReg, "data/a", "one"},
		{tar.TypeLink, "data/b", "data/a"}, {tar.TypeSymlink, "data/l", "a"}, {tar.TypeReg, "data/deep/c", "two"}}),
		io.Discard, dir, "data", "here"))
	for name, want := range map[string]string{"a": "one", "b": "one", "l": "one", "deep/c": "two"} {
		got, err := os.ReadFile(filepath.Join(dir, "here", name)) //nolint:gosec // of the test
		require.NoError(t, err)
		require.Equal(t, want, string(got), name)
	}
}
