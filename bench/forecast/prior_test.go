package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/forecast"
)

func loadLessons() []lesson {
	return []lesson{{name: "a", trace: drawnTrace(1, 2, "x", "y")}, {name: "b", trace: drawnTrace(2, 1, "x")}}
}

// A trace gets what the other one taught, and nothing of its own.
func TestAPriorIsLearnedFromTheOtherTraces(t *testing.T) {
	t.Parallel()
	all := loadLessons()
	got, from, err := priorOf(context.Background(), "", all[0], all)
	require.NoError(t, err)
	require.Equal(t, "learned from b", from)
	want, err := learnPrior(context.Background(), all[1:])
	require.NoError(t, err)
	require.Equal(t, want.Bytes(), got.Bytes(), "the same lessons give the same prior")
	other, _, err := priorOf(context.Background(), "", all[1], all)
	require.NoError(t, err)
	require.NotEqual(t, other.Bytes(), got.Bytes())
}

func TestThePriorIsThatOfTheFlag(t *testing.T) {
	t.Parallel()
	all := loadLessons()
	for flag, want := range map[string]forecast.Prior{"builtin": forecast.BuiltIn(), "none": {}} {
		got, _, err := priorOf(context.Background(), flag, all[0], all)
		require.NoError(t, err)
		require.Equal(t, want, got, flag)
	}
	got, from, err := priorOf(context.Background(), "", all[0], all[:1])
	require.NoError(t, err)
	require.Equal(t, "built in", from)
	require.Equal(t, forecast.BuiltIn(), got)
	_, _, err = priorOf(context.Background(), filepath.Join(t.TempDir(), "none"), all[0], all)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestAWrittenPriorIsRead(t *testing.T) {
	t.Parallel()
	all, path := loadLessons(), filepath.Join(t.TempDir(), "prior.bin")
	require.NoError(t, writePrior(context.Background(), path, all))
	got, from, err := priorOf(context.Background(), path, all[0], all)
	require.NoError(t, err)
	require.Equal(t, path, from)
	want, err := learnPrior(context.Background(), all)
	require.NoError(t, err)
	require.Equal(t, want.Bytes(), got.Bytes())
}
