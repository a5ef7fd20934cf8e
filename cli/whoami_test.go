package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/cli/exit"
)

// Who is refused by a cap is sent to where the caps are, and what is used of
// them.
func TestWhoIsCappedSeesIt(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.createPool()
	w.mustRun("users", "create", "bob@example.com", "--role", "member")
	w.mustRun("users", "caps", "bob@example.com", "--max-gpus", "3", "--max-per-day", "50", "--max-lead", "1d",
		"--max-window", "4h")
	file := filepath.Join(t.TempDir(), "bob.key")
	w.mustRun("key", "create", "laptop", "--user", "bob@example.com", "--role", "member", "--out", file)
	secret, err := os.ReadFile(file)
	require.NoError(t, err)
	w.env["FOREWARM_API_KEY"] = strings.TrimSpace(string(secret))
	w.mustRun("allocate", "--gpus", "2", "--pool", "lab", "--for", "1h", "--wait")
	w.mustRun("reserve", "--gpus", "1", "--pool", "lab", "--at", "in 20m", "--for", "1h")
	_, errs, code := w.runCommand("allocate", "--gpus", "2", "--pool", "lab")
	require.Equal(t, exit.Policy, code)
	require.Contains(t, errs, "forewarm whoami\n")
	require.Equal(t, strings.TrimSpace(`
KEY           laptop
KIND          person
ROLE          member
USER          bob@example.com
ORGANIZATION  acme
KEY'S CAPS    -
OF THEM USED  -
USER'S CAPS   3 GPUs, $50.00 a day, 24h ahead, 4h long
OF THEM USED  2 GPUs now and at most 3 ahead, $6.30 and 3.00 GPU-hours today`), w.mustRun("whoami"))
}
