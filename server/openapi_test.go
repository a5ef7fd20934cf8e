package server_test

import (
	"flag"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/server"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// compareGolden compares got with a file, which -update rewrites.
func compareGolden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got), "run the test with -update and review the change")
}

func TestOpenAPI(t *testing.T) {
	t.Parallel()
	text, err := server.OpenAPI()
	require.NoError(t, err)
	compareGolden(t, "../contract/openapi.yaml", text)
}
