package keys_test

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/keys"
	"github.com/forewarm/forewarm/internal/obs"
)

// TestDerivedKeysStandApart: one purpose's key is not another's, nor a stored hash.
func TestDerivedKeysStandApart(t *testing.T) {
	t.Parallel()
	one, err := keys.ParsePepper("1:" + strings.Repeat("5a", 32))
	require.NoError(t, err)
	other, err := keys.ParsePepper("1:" + strings.Repeat("5b", 32))
	require.NoError(t, err)
	require.Len(t, one.Derive("seals"), 32)
	require.Equal(t, one.Derive("seals"), one.Derive("seals"))
	require.NotEqual(t, one.Derive("seals"), one.Derive("else"))
	require.NotEqual(t, one.Derive("seals"), other.Derive("seals"))
	require.NotContains(t, one.Hash(obs.NewSecret("seals")), hex.EncodeToString(one.Derive("seals")))
}
