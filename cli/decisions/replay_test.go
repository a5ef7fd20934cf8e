package decisions

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRecomputeTellsWhatDiffers(t *testing.T) {
	t.Parallel()
	const warm = `{"version":1,"kind":"warm_reservation","facts":{"at":"2026-03-02T09:24:00Z",` +
		`"start":"2026-03-02T09:30:00Z","lead_p95_ns":300000000000,` +
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
