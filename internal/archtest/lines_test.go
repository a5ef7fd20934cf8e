package archtest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// columns is a text of n characters.
func columns(n int) string { return strings.Repeat("x", n) }

func TestAnExceptionExcusesItsFileAlone(t *testing.T) {
	t.Parallel()
	long := fileWith("server", "sort", "func f() { sort.Ints(nil) } //"+columns(200))
	tree := plantedTree(t, map[string]string{"server/a.go": long, "server/b.go": long, "server/c.go": "package server\n"})
	found := checkLines(tree, Rules{LongFiles: map[string]string{"server/a.go": "planted", "server/c.go": "idle"}})
	require.Len(t, found, 2)
	files := found[0].File + " " + found[1].File
	require.Contains(t, files, "server/b.go:6")
	require.Contains(t, files, "server/c.go")
}

func TestALineEndsBeforeItsBreak(t *testing.T) {
	t.Parallel()
	f, err := parseFile("a.go", []byte("package a\r\n\n// é"))
	require.NoError(t, err)
	require.Equal(t, []int{9, 0, 4}, f.LineLengths)
}
