package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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
	require.NotEqual(t, ExitOK, code)
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

func TestRecomputeTellsWhatDiffers(t *testing.T) {
	t.Parallel()
	const warm = `{"version":1,"kind":"warm_reservation","facts":{"at":"2026-03-02T09:24:00Z","start":"2026-03-02T09:30:00Z","lead_p95_ns":300000000000,` +
		`"guard_ns":60000000000},"outcome":{"does":true,"reason":"lead_time_reached","subject":"rsv_1"}}`
	for name, c := range map[string]struct{ engine, record, diff, fails string }{
		"as it was":         {"plan", warm, "", ""},
		"another moment":    {"plan", strings.Replace(warm, "09:24:00", "09:23:59", 1), "recorded", ""},
		"another reason":    {"plan", strings.Replace(warm, "lead_time_reached", "idle", 1), "recorded", ""},
		"another form":      {"plan", strings.Replace(warm, `"version":1,`, `"version": 1,`, 1), "not in the form", ""},
		"unknown facts":     {"plan", strings.Replace(warm, `"facts":{`, `"facts":{"mood":1,`, 1), "", "mood"},
		"another program":   {"plan", strings.Replace(warm, `"version":1`, `"version":9`, 1), "version 9", ""},
		"no such engine":    {"oracle", warm, "", "no engine"},
		"not even a record": {"admission", `[]`, "", "decoding"},
	} {
		diff, err := recomputeDecision(c.engine, []byte(c.record))
		if c.fails != "" {
			require.ErrorContains(t, err, c.fails, name)
			continue
		}
		require.NoError(t, err, name)
		require.Contains(t, diff, c.diff, name)
		require.Equal(t, c.diff == "", diff == "", "%s: %s", name, diff)
	}
}
