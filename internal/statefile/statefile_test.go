package statefile_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/statefile"
)

type state struct{ Names []string }

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "deep", "state.json")
	var got state
	found, err := statefile.Read(path, &got)
	require.NoError(t, err)
	require.False(t, found)

	require.NoError(t, statefile.Write(path, state{Names: []string{"a", "b", "c"}}))
	require.NoError(t, statefile.Write(path, state{Names: []string{"d"}}))
	found, err = statefile.Read(path, &got)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, state{Names: []string{"d"}}, got)

	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, entries, 1, "no stray temporary file")
}

func TestDamagedFileIsAnErrorAndIsKept(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "{", `{"Names":`, `{"Other":1}`, `{"Names":[]}{}`, `{"Names":3}`} {
		path := filepath.Join(t.TempDir(), "state.json")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		var got state
		_, err := statefile.Read(path, &got)
		require.ErrorContains(t, err, "damaged", text)
		kept, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, text, string(kept))
	}
}

// What a later version has added is no damage for who goes on with what it knows.
func TestFieldsOfALaterVersion(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.json")
	require.NoError(t, os.WriteFile(path, []byte(`{"Names":["a"],"Later":{"x":1}}`), 0o600))
	var got state
	_, err := statefile.Read(path, &got)
	require.ErrorContains(t, err, "damaged")
	found, err := statefile.ReadKnown(path, &got)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, state{Names: []string{"a"}}, got)
	for _, text := range []string{"", "{", `{"Names":[]}{}`, `{"Names":3}`} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := statefile.ReadKnown(path, &got)
		require.ErrorContains(t, err, "damaged", text)
	}
}

// A temporary file left by a crash in the middle of a write is not read.
func TestCrashInTheMiddleOfAWrite(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.json")
	require.NoError(t, statefile.Write(path, state{Names: []string{"old"}}))
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), ".state.json.1"), []byte(`{"Na`), 0o600))
	var got state
	_, err := statefile.Read(path, &got)
	require.NoError(t, err)
	require.Equal(t, []string{"old"}, got.Names)
	require.NoError(t, statefile.Write(path, state{Names: []string{"new"}}))
	_, err = statefile.Read(path, &got)
	require.NoError(t, err)
	require.Equal(t, []string{"new"}, got.Names)
}

func TestWriteFailureIsSaid(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.Error(t, statefile.Write(filepath.Join(file, "state.json"), state{}))
}
