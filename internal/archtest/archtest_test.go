package archtest

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite testdata/agent_deps.txt")

// loadTree is one call of go list for the whole test.
var loadTree = sync.OnceValues(func() (Tree, error) {
	root, err := filepath.Abs("../..")
	if err != nil {
		return Tree{}, err
	}
	return Load(context.Background(), root)
})

func TestTheHouseObeysItsRules(t *testing.T) {
	t.Parallel()
	tree, err := loadTree()
	require.NoError(t, err)
	require.Equal(t, modulePath, tree.Module)
	require.NotEmpty(t, tree.Packages)
	for _, v := range Check(tree, House()) {
		t.Error(v)
	}
}

const agentGolden = "testdata/agent_deps.txt"

// TestAgentClosure makes every new dependency of the customer's agent a line in
// a diff. The standard library is left out: it comes with the compiler.
func TestAgentClosure(t *testing.T) {
	t.Parallel()
	tree, err := loadTree()
	require.NoError(t, err)
	closure := agentClosure(tree)
	if *update {
		require.NoError(t, os.WriteFile(agentGolden, []byte(closure), 0o644))
	}
	want, err := os.ReadFile(agentGolden)
	require.NoError(t, err)
	require.Equal(t, string(want), closure,
		"the agent needs other packages than before: if that is meant, run go test ./internal/archtest -update")
}

func agentClosure(tree Tree) string {
	i := slices.IndexFunc(tree.Packages, func(p Package) bool { return p.Path == "cmd/forewarm-agent" })
	if i < 0 {
		return ""
	}
	var b strings.Builder
	for _, dep := range slices.Sorted(slices.Values(tree.Packages[i].Deps)) {
		if dep != "C" && !tree.Std(dep) && !strings.HasPrefix(dep, "vendor/") {
			b.WriteString(dep + "\n")
		}
	}
	return b.String()
}

func TestMatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{
		{"core/capacity", "core/capacity", true},
		{"core/capacity", "core/capacitys", false},
		{"core/capacity", "core/capacity/x", false},
		{"core/...", "core", true},
		{"core/...", "core/capacity/x", true},
		{"core/...", "corelib", false},
		{"...", "anything/at/all", true},
		{"...test", "ledger/ledgertest", true},
		{"...test", "ledger/testdata", false},
	} {
		require.Equal(t, c.want, matchesPattern(c.pattern, c.path), "%s against %s", c.pattern, c.path)
	}
}
