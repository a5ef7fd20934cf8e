package main_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

type contexts struct {
	Current  string
	Contexts map[string]struct{ Server, Key string }
}

func (h home) readContexts(t *testing.T) (c contexts) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(h.dir, "config", "forewarm", "contexts.yaml"))
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, &c))
	return c
}

// A second installation of the same person takes no context from the first, and a
// recovered key goes to the address of its own server.
func TestInstallationsKeepTheirContexts(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	up := func(dir string) *process {
		return h.start(t, nil, "up", "--data-dir", filepath.Join(h.dir, dir), "--listen", "127.0.0.1:0")
	}
	first := up("a")
	first.awaitLine(t, 0, patience, contextSaved)
	before := h.readContexts(t)
	second := up("b")
	second.awaitLine(t, 0, patience, regexp.MustCompile(`context +"local-2" saved`))
	now := h.readContexts(t)
	require.Equal(t, before.Contexts["local"], now.Contexts["local"])
	require.Equal(t, "local-2", now.Current)
	require.NotEqual(t, now.Contexts["local"].Server, now.Contexts["local-2"].Server)

	for i, name := range []string{"local", "local-2"} { // the last one stays selected
		recovers := h.start(t, nil, "key", "recover", "--data-dir", filepath.Join(h.dir, []string{"a", "b"}[i]))
		_, made := recovers.awaitLine(t, 0, patience, regexp.MustCompile(`^(\S+_live_\S+)$`))
		require.Zero(t, recovers.wait(t, patience), recovers.errors.String())
		after := h.readContexts(t)
		require.Equal(t, made[1], after.Contexts[name].Key)
		require.Equal(t, now.Contexts[name].Server, after.Contexts[name].Server)
		require.Len(t, after.Contexts, 2)
	}

	require.Zero(t, first.stop(t, ending), first.errors.String())
	again := up("a")
	again.awaitLine(t, 0, patience,
		regexp.MustCompile(`context +"local" has a key for this server; to use it: forewarm contexts use local$`))
	moved := h.readContexts(t)
	require.NotEqual(t, now.Contexts["local"].Server, moved.Contexts["local"].Server, "it listens elsewhere now")
	require.Equal(t, now.Contexts["local-2"].Server, moved.Contexts["local-2"].Server)
	requireKeyOpens(t, again, moved.Contexts["local"].Key)
	require.Zero(t, again.stop(t, ending), again.errors.String())
	require.Zero(t, second.stop(t, ending), second.errors.String())
	second = up("b")
	second.awaitLine(t, 0, patience, regexp.MustCompile(`context +"local-2" is selected, and has a key for this server$`))
	require.Zero(t, second.stop(t, ending), second.errors.String())
}
