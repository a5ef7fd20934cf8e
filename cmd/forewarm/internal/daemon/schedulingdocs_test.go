package daemon

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/ledger"
)

// What the table of the documentation and the example of a configuration name as a default is one.
func TestDefaultsOfSchedulingAreThoseThatAreDocumented(t *testing.T) {
	t.Parallel()
	def := ledger.SchedulingConfig{}.Of("").Policy(nil)
	for path, row := range map[string]string{
		"../../../../docs/configuration.md":        "(?m)^\\| `scheduling\\.(KEY)` \\| `([^`]+)` \\|",
		"../../../../deploy/forewarm.example.yaml": `(?m)^  (?:# )?(KEY): ([^#\n]*?) +#`,
	} {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, key := range []string{"order", "share_weight", "overdue", "min_runtime", "leave_within", "most_preemptions",
			"half_life", "start_charge", "softening", "bands", "promises", "crowd", "most_excess", "restart_cost",
			"most_preempting"} {
			found := regexp.MustCompile(strings.ReplaceAll(row, "KEY", key)).FindStringSubmatch(string(text))
			require.NotEmpty(t, found, "%s has no %s", path, key)
			c, err := readScheduling(t, "{"+key+": "+found[2]+"}")
			require.NoError(t, err, path)
			require.Equal(t, def, c.Of("").Policy(nil), "%s says that %s is %s", path, key, found[2])
		}
	}
}
