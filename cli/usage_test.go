package cli

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	shellBlock = regexp.MustCompile("(?s)```(?:sh|console)\n(.*?)```")
	ours       = regexp.MustCompile(`(?m)(?:^|\$\(|^\s+|^\$ )forewarm ([^\n)"&]*)`)
)

// Every line of the page about using GPUs is one that a shell reads, and of ours one
// that the command understands.
func TestLinesAboutUsingAnAllocation(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/using-an-allocation.md")
	require.NoError(t, err)
	w := newTown(t)
	blocks, lines := shellBlock.FindAllStringSubmatch(string(page), -1), 0
	for _, block := range blocks {
		text := regexp.MustCompile(`(?m)^\$ `).ReplaceAllString(block[1], "")
		out, err := exec.Command("sh", "-n", "-c", text).CombinedOutput()
		require.NoError(t, err, "%s: %s", text, out)
		for _, line := range ours.FindAllStringSubmatch(strings.ReplaceAll(text, "\\\n", ""), -1) {
			words := splitWords(strings.ReplaceAll(line[1], "$rank", "1"))
			c, rest, err := w.newRoot().Find(words)
			require.NoError(t, err, line[0])
			require.NotEqual(t, "forewarm", c.Name(), line[0])
			require.NoError(t, c.ParseFlags(rest), line[0])
			require.NoError(t, c.ValidateArgs(c.Flags().Args()), line[0])
			lines++
		}
	}
	require.Len(t, blocks, 10)
	require.Equal(t, 24, lines)
}
