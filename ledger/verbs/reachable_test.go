package verbs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/core/statemachine"
)

// What the transition tables promise can come about: events lead to each state,
// and the ledger or the planner applies each event.
func TestEveryStateAndEventIsReached(t *testing.T) {
	t.Parallel()
	requireReached(t, &reservation.Machine)
	requireReached(t, &allocation.Machine)
	requireReached(t, &node.Machine)
	text := readSources(t, "../internal/*", "../../core/plan")
	for _, pkg := range []string{"reservation", "allocation", "node"} {
		for _, event := range eventsOf(t, pkg) {
			require.Contains(t, text, pkg+"."+event, "nothing but tests applies this event")
		}
	}
}

func requireReached[S, E ~string](t *testing.T, table *statemachine.Table[S, E]) {
	t.Helper()
	reached := slices.Clone(table.Initial)
	for range table.States {
		for _, x := range table.Transitions {
			if slices.Contains(reached, x.From) && !slices.Contains(reached, x.To) {
				reached = append(reached, x.To)
			}
		}
	}
	require.ElementsMatch(t, table.States, reached, table.Name)
}

// eventsOf are the names of a package's events.
func eventsOf(t *testing.T, pkg string) (names []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "..", "core", pkg, pkg+".go"), nil, 0)
	require.NoError(t, err)
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok {
			if of, typed := v.Type.(*ast.Ident); typed && of.Name == "Event" {
				names = append(names, v.Names[0].Name)
			}
		}
		return true
	})
	require.NotEmpty(t, names, pkg)
	return names
}

// readSources are the programs of folders, without their tests.
func readSources(t *testing.T, folders ...string) string {
	t.Helper()
	var all strings.Builder
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		require.NoError(t, err)
		for _, f := range files {
			if !strings.HasSuffix(f, "_test.go") {
				text, err := os.ReadFile(f) //nolint:gosec // our own files
				require.NoError(t, err)
				all.Write(text)
			}
		}
	}
	return all.String()
}
