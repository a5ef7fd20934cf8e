package statemachine_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/core/statemachine"
)

//go:generate go test . -run TestDiagrams -update

var update = flag.Bool("update", false, "rewrite docs/states.md from the tables")

const page = "../../docs/states.md"

// TestDiagrams holds the page that people read to the tables that decide.
func TestDiagrams(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("# States\n\nGenerated from the transition tables in `core/`; do not edit. " +
		"`go generate ./core/statemachine` writes it again.\n")
	b.WriteString(formatSection(&reservation.Machine, "A promise of GPUs over a window."))
	b.WriteString(formatSection(&allocation.Machine, "GPUs that somebody holds now, or waits for."))
	b.WriteString(formatSection(&node.Machine,
		"One machine. Busy, held and idle are not states: they follow from what sits on it."))
	b.WriteString(formatSection(&job.Machine, "A command to run on GPUs."))
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(b.String()), 0o644))
	}
	written, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Equal(t, b.String(), string(written), "run go generate ./core/statemachine and review the change")
}

func formatSection[S, E ~string](m *statemachine.Table[S, E], about string) string {
	return fmt.Sprintf("\n## %s\n\n%s\n\n```mermaid\n%s```\n\nStates: `%s`.\nLive: `%s`.\nEvents: "+
		"`%s`.\n\n```sql\nCHECK (%s)\n```\n",
		strings.ToUpper(m.Name[:1])+m.Name[1:], about, m.Mermaid(), strings.Join(m.Names(), "` `"),
		joinWords(m.Live()), joinWords(m.Events()), m.SQLCheck("state"))
}

func joinWords[T ~string](words []T) string {
	text := make([]string, len(words))
	for i, w := range words {
		text[i] = string(w)
	}
	return strings.Join(text, "` `")
}

// TestTheSchemaAgrees holds both dialects' CHECK lists to the tables.
func TestTheSchemaAgrees(t *testing.T) {
	t.Parallel()
	for _, dialect := range []string{"postgres", "sqlite"} {
		schema, err := os.ReadFile("../../migrations/" + dialect + "/00002_capacity.sql")
		require.NoError(t, err)
		require.Contains(t, string(schema), node.Machine.SQLCheck("state"))
		require.Contains(t, string(schema), reservation.Machine.SQLCheck("state"))
		require.Contains(t, string(schema), allocation.Machine.SQLCheck("state"))
	}
}
