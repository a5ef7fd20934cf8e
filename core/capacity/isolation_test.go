package capacity_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/capacity"
)

func TestIsolationsAreOrdered(t *testing.T) {
	t.Parallel()
	order := []capacity.Isolation{capacity.IsolationEnvironment, capacity.IsolationUser, capacity.IsolationDevices}
	for i, is := range order {
		require.True(t, is.Valid())
		require.Equal(t, i >= 1, is.AtLeast(""), "without a word it is user")
		for j, least := range order {
			require.Equal(t, i >= j, is.AtLeast(least), "%s for %s", is, least)
		}
	}
	for _, unknown := range []capacity.Isolation{"", "mirror"} {
		require.False(t, unknown.Valid())
		require.False(t, unknown.AtLeast(capacity.IsolationEnvironment))
	}
}
