package history_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/agent/history"
	"github.com/forewarm/forewarm/internal/statefile/statefiletest"
)

func TestCheckpointSurvivesReopening(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "positions.json")
	c, err := history.OpenCheckpoint(path)
	require.NoError(t, err)
	require.Empty(t, c.Get("a.log"))

	head, err := history.HeadOf(strings.NewReader("one\ntwo\n"), 8)
	require.NoError(t, err)
	want := []history.Position{{Dev: 1, Ino: 1 << 63, Offset: 8, Lines: 2, Head: head}, {Dev: 1, Ino: 9}}
	require.NoError(t, c.Save("a.log", want))

	again, err := history.OpenCheckpoint(path)
	require.NoError(t, err)
	require.Equal(t, want, again.Get("a.log"))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, left, 1)
}

func TestADamagedCheckpointIsATypedError(t *testing.T) {
	t.Parallel()
	const positionOfA = `{"version":1,"files":{"a":[{"dev":1,"ino":1,`
	for name, text := range map[string]string{
		"empty":           "",
		"cut":             `{"version":1,"files":{"a":[{"dev":1`,
		"other version":   `{"version":2,"files":{}}`,
		"unknown field":   `{"version":1,"files":{},"x":1}`,
		"text after":      `{"version":1,"files":{}} x`,
		"negative offset": positionOfA + `"offset":-1,"lines":0,"head":{"size":0,"sum":""}}]}}`,
		"huge head":       positionOfA + `"offset":9999,"lines":0,"head":{"size":5000,"sum":""}}]}}`,
		"no sum":          positionOfA + `"offset":9,"lines":0,"head":{"size":5,"sum":"x"}}]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "positions.json")
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
			_, err := history.OpenCheckpoint(path)
			var damaged *history.DamagedError
			require.ErrorAs(t, err, &damaged)
			require.ErrorContains(t, err, "move it away")
			require.ErrorContains(t, err, path)
		})
	}
}

func TestAFailedSaveKeepsTheOldPositions(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "positions.json")
	c, err := history.OpenCheckpoint(path)
	require.NoError(t, err)
	require.NoError(t, c.Save("a", []history.Position{{Offset: 1, Lines: 1}}))
	statefiletest.Block(t, path)
	require.Error(t, c.Save("a", []history.Position{{Offset: 2, Lines: 2}}))
	require.EqualValues(t, 1, c.Get("a")[0].Offset)
}

func TestHeadSeesOnlyItsOwnBytes(t *testing.T) {
	t.Parallel()
	head, err := history.HeadOf(strings.NewReader("one\ntwo"), 4)
	require.NoError(t, err)
	require.True(t, head.Matches(strings.NewReader("one\nand more")))
	require.False(t, head.Matches(strings.NewReader("One\ntwo")))
	require.False(t, head.Matches(strings.NewReader("on")))
	require.True(t, history.Head{}.Matches(strings.NewReader("")))
}
