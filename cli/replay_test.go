package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/cli/exit"
)

// Every record that a day in this town leaves is computed again through the
// command; one that was changed on its way is told from it.
func TestReplay(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.createPool()
	w.mustRun("reserve", "--gpus", "4", "--pool", "lab", "--at", "10:30", "--for", "1h")
	w.mustRun("allocate", "--gpus", "4", "--pool", "lab", "--for", "1h")
	_, _, code := w.runCommand("allocate", "--gpus", "8", "--pool", "lab", "--for", "9h")
	require.NotEqual(t, exit.OK, code)
	w.passTime(4 * time.Hour)
	ids := strings.Fields(w.mustRun("decisions", "list", "--last", "0", "-o", "name"))
	require.Greater(t, len(ids), 10)
	engines := map[string]int{}
	for _, id := range ids {
		require.Equal(t, "identical", w.mustRun("decisions", "replay", id), id)
		record := w.mustRun("decisions", "show", id, "-o", "json")
		for _, engine := range []string{"admission", "plan"} {
			if strings.Contains(record, `"engine": "`+engine+`"`) {
				engines[engine]++
			}
		}
	}
	require.Positive(t, engines["admission"])
	require.Positive(t, engines["plan"])
}
