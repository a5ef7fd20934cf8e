package provisioners_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/provisioners"
)

func TestPriceIsExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		price := provisioners.Price(rapid.Int64Range(0, 1_000_000_000_000).Draw(t, "micros"))
		text, err := price.MarshalText()
		require.NoError(t, err)
		var back provisioners.Price
		require.NoError(t, back.UnmarshalText(text))
		require.Equal(t, price, back)
	})
}

func TestPriceForms(t *testing.T) {
	t.Parallel()
	good := map[string]provisioners.Price{"0": 0, "2.49": 2_490_000, "2.": 2_000_000, "0.000001": 1}
	for text, want := range good {
		var got provisioners.Price
		require.NoError(t, got.UnmarshalText([]byte(text)), text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "-1", ".5", "1.0000001", "1e3", "NaN", "1.-5", "1,5", "1000001",
		"99999999999999999999"} {
		var got provisioners.Price
		require.Error(t, got.UnmarshalText([]byte(text)), text)
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a", "sim", "sim-2", "0"} {
		require.NoError(t, provisioners.CheckName(name))
	}
	for _, name := range []string{"", "-a", "A", "a/b", "..", "a b", "ä"} {
		require.Error(t, provisioners.CheckName(name), name)
	}
}

func TestKindOfAnUntypedErrorIsUnknown(t *testing.T) {
	t.Parallel()
	require.Equal(t, provisioners.KindUnknown, provisioners.KindOf(errors.New("broken pipe")))
	wrapped := fmt.Errorf("creating: %w", provisioners.Errorf(provisioners.KindQuota, "8 GPUs"))
	require.Equal(t, provisioners.KindQuota, provisioners.KindOf(wrapped))
	require.True(t, provisioners.Final(wrapped))
	require.False(t, provisioners.Final(provisioners.Errorf(provisioners.KindTransient, "again")))
}

func TestEnded(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	require.NoError(t, provisioners.Ended(ctx))
	cancel()
	err := provisioners.Ended(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, provisioners.KindTransient, provisioners.KindOf(err))
}
