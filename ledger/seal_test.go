package ledger_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/ledger"
)

// TestSealKeysHideThemselves: a configuration may be printed.
func TestSealKeysHideThemselves(t *testing.T) {
	t.Parallel()
	key := ledger.NewSealKey([]byte("secret secret secret secret secret"))
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		require.NotContains(t, fmt.Sprintf(verb, key), "secret")
	}
}

// TestAnchorsAreRead as they were printed, and nothing else.
func TestAnchorsAreRead(t *testing.T) {
	t.Parallel()
	seal := ledger.Seal{Number: 7, MAC: make([]byte, 32)}
	anchor, err := ledger.ParseAnchor(seal.Anchor())
	require.NoError(t, err)
	require.Equal(t, int64(7), anchor.Number)
	none, err := ledger.ParseAnchor("")
	require.NoError(t, err)
	require.Zero(t, none)
	for _, text := range []string{"7", "7:", "7:zz", "0:" + seal.Anchor()[2:], "-1:" + seal.Anchor()[2:],
		seal.Anchor() + "00", ":"} {
		_, err := ledger.ParseAnchor(text)
		require.Error(t, err, text)
	}
}
