package flags_test

import (
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/cli/flags"
)

// What is to be typed again is what was typed: brackets belong to the job of an array, and a list is given value by
// value.
func TestWhatWasTypedKeepsItsBrackets(t *testing.T) {
	t.Parallel()
	c := &cobra.Command{Use: "run", Run: func(*cobra.Command, []string) {}}
	c.Flags().StringArray("after", nil, "")
	c.Flags().StringSlice("state", nil, "")
	c.Flags().String("name", "", "")
	c.SetArgs([]string{"--after", "arr[12]", "--after", "prepare", "--state", "held,pending", "--name", "[x]"})
	require.NoError(t, c.Execute())
	require.Equal(t, "run --after 'arr[12]' --after prepare --name '[x]' --state held,pending", flags.TypedLine(c))
}
