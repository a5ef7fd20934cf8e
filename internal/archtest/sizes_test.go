package archtest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// columns is a text of n characters.
func columns(n int) string { return strings.Repeat("x", n) }

func TestALineEndsBeforeItsBreak(t *testing.T) {
	t.Parallel()
	f, err := parseFile("a.go", []byte("package a\r\n\n// é"))
	require.NoError(t, err)
	require.Equal(t, []int{9, 0, 4}, f.LineLengths)
}

func TestMethodsAreCountedByType(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	text.WriteString("package server\n\ntype large[T any] struct{}\n\ntype other struct{}\n")
	for i := range mostMethods {
		fmt.Fprintf(&text, "\nfunc (l *large[T]) m%d() {}\n\nfunc (other) m%d() {}\n", i, i)
	}
	full := plantedTree(t, map[string]string{"server/a.go": text.String()})
	require.Empty(t, checkSizes(full, Rules{}))
	text.WriteString("\nfunc (large[T]) more() {}\n")
	over := plantedTree(t, map[string]string{"server/a.go": text.String()})
	found := checkSizes(over, Rules{})
	require.Len(t, found, 1)
	require.Equal(t, "type large has 41 methods of at most 40", found[0].What)
	require.Empty(t, checkSizes(over, Rules{LargeTypes: []string{"server/large"}}))
	require.Empty(t, checkSizes(plantedTree(t, map[string]string{"server/a_test.go": text.String()}), Rules{}),
		"methods in tests do not count")
}
