package daemon

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// What is proposed after a start can be typed as it stands, also where the program was
// only built and not installed.
func TestTheProgramIsNamedAsItCanBeCalled(t *testing.T) {
	t.Parallel()
	found := func(string) (string, error) { return "/usr/bin/forewarm", nil }
	missing := func(string) (string, error) { return "", errors.New("not found") }
	require.Equal(t, "forewarm", programName(found, "bin/forewarm"))
	require.Equal(t, "bin/forewarm", programName(missing, "bin/forewarm"))
	require.Equal(t, "forewarm", programName(missing, ""))
}
