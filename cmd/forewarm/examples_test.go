package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// bootsIn asks for GPUs of a pool until a machine boots for them: the
// configuration works from the request to its provider.
func bootsIn(t *testing.T, api *client.Client, pool string) {
	t.Helper()
	a, err := api.Allocate(t.Context(), contract.AllocationCreate{Pool: pool, GPUs: 1}, client.Options{})
	require.NoError(t, err)
	eventually(t, patience, func() string {
		nodes, err := client.All(api.Nodes(t.Context(), client.Filter{}))
		require.NoError(t, err)
		for _, n := range nodes {
			if n.State == "booting" || n.State == "ready" {
				return ""
			}
		}
		return "no machine boots for " + a.ID
	})
}

// The configuration that people begin with starts as it stands.
func TestTheExampleConfigurationStarts(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	p, _, api :=
		h.startUp(t, "--config", "../../deploy/forewarm.example.yaml", "--data-dir", h.dataDir(), "--listen",
			"127.0.0.1:0")
	bootsIn(t, api, "a100")
	require.Zero(t, p.stop(t, ending), p.errors.String())
}

var (
	consoleBlock = regexp.MustCompile("(?ms)^```console\n(.*?)^```$")
	allocationID = regexp.MustCompile(`alc_[0-9a-z]{26}`)
)

// commandsOfReadme are the lines that README.md tells people to type at a prompt.
func commandsOfReadme(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	var lines []string
	for _, block := range consoleBlock.FindAllSubmatch(page, -1) {
		for line := range strings.Lines(string(block[1])) {
			if command, typed := strings.CutPrefix(line, "$ "); typed {
				lines = append(lines, strings.TrimSpace(command))
			}
		}
	}
	require.GreaterOrEqual(t, len(lines), 6)
	return lines
}

// What README.md tells people to type works beside the demo, line by line. Its
// ellipsis stands for the allocation that the line before printed.
func TestReadmeAtAPrompt(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	env := []string{"FOREWARM_DATA_DIR=" + h.dataDir()}
	p := h.start(t, env, "up", "--demo", "--listen", "127.0.0.1:0")
	h.awaitKey(t, p)
	prompt := t.TempDir() // where they are typed: a checkout, as far as they can tell
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(prompt, "bin"), 0o700))
	require.NoError(t, os.Symlink(binary, filepath.Join(prompt, "bin", "forewarm")))
	history := "job_id,submit_ts,end_ts,gpus,tenant\n1,1772355600,1772359200,2,a\n2,1772442000,1772445600,2,a\n"
	require.NoError(t, os.WriteFile(filepath.Join(prompt, "jobs.csv"), []byte(history), 0o600))
	last := ""
	for _, line := range commandsOfReadme(t) {
		line = strings.ReplaceAll(line, "alc_…", last)
		cmd := exec.Command("bash", "-euc", strings.ReplaceAll(line, "./cmd/",
			root+"/cmd/")) //nolint:gosec // our own page
		cmd.Dir = prompt
		cmd.Env = append(os.Environ(), "HOME="+h.dir, "XDG_CONFIG_HOME="+filepath.Join(h.dir, "config"),
			"XDG_STATE_HOME="+h.dir, "NO_COLOR=1")
		if strings.HasPrefix(line, "go build") {
			cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath")
			cmd.Args[2] = strings.Replace(line, "-o bin/", "-o "+prompt+"/bin/", 1)
		}
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "$ %s\n%s", line, out)
		if found := allocationID.FindString(string(out)); found != "" {
			last = found
		}
	}
	require.NotEmpty(t, last)
	require.Zero(t, p.stop(t, ending), p.errors.String())
}
