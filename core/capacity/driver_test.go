package capacity_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/capacity"
)

func TestDriversAreComparedByTheirNumbers(t *testing.T) {
	t.Parallel()
	order := []capacity.Driver{"", "0", "470.256.02", "535", "535.98", "535.104", "535.104.05", "535.104.12", "570.86.10"}
	for i, is := range order {
		for j, least := range order {
			require.Equal(t, i >= j, is.AtLeast(least), "%q for %q", is, least)
		}
	}
	require.True(t, capacity.Driver("535.104").AtLeast("535.104.0"), "what is left out is 0")
	require.True(t, capacity.Driver("535.104.5").AtLeast("535.104.05"))
}

func TestWhatIsNoDriver(t *testing.T) {
	t.Parallel()
	for _, is := range []capacity.Driver{"535", "535.104", "535.104.05", "1.2.3.4", "0"} {
		require.True(t, is.Valid(), is)
	}
	for _, is := range []capacity.Driver{"", "SIM", "535.", ".1", "535..1", "1.2.3.4.5",
		"-1", "+1", "1.2x", "1234567", " 535"} {
		require.False(t, is.Valid(), is)
		require.False(t, is.AtLeast("0"), is)
	}
}
