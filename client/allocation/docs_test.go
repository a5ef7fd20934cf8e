package allocation

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/client/clienttest"
)

var goBlock = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")

// The program of the page about using GPUs runs as it stands there, but for where its torchrun is:
// that tells how it was started.
func TestTheProgramOfThePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/using-an-allocation.md")
	require.NoError(t, err)
	blocks := goBlock.FindAllStringSubmatch(string(page), -1)
	require.Len(t, blocks, 1)
	venv, err := os.MkdirTemp("/var/tmp", "forewarm-client-test-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(venv)) })
	require.NoError(t, os.Chmod(venv, 0o711))                        //nolint:gosec // users of holds pass through it
	require.NoError(t, os.WriteFile(filepath.Join(venv, "torchrun"), //nolint:gosec // and run what is in it
		[]byte("#!/bin/sh\necho \"torchrun $*\"\n"), 0o755))
	main := filepath.Join(t.TempDir(), "main.go")
	require.NoError(t, os.WriteFile(main, []byte(strings.ReplaceAll(blocks[0][1], "/opt/venv/bin", venv)), 0o600))

	i := clienttest.Start()
	t.Cleanup(i.Close)
	i.StartDaemons()
	run := exec.CommandContext(t.Context(), "go", "run", main)
	run.Env = append(os.Environ(), "FOREWARM_API="+i.URL, "FOREWARM_API_KEY="+i.Key, "CGO_ENABLED=0", "GOFLAGS=-trimpath")
	out, err := run.CombinedOutput()
	require.NoError(t, err, string(out))
	for _, rank := range []string{"0", "1"} {
		require.Regexp(t, `(?m)^torchrun --nnodes 2 --node-rank `+rank+` --nproc-per-node 4 --master-addr \S+ `+
			`--master-port 2\d{4} /srv/jobs/train.py$`, string(out))
	}
	requireNothingHeld(t, i.Client())
}
