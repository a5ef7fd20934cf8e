package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/forewarm/forewarm/internal/pagetest"
)

// files are what the examples speak of, as somebody would have them.
func (w *home) writeExampleFiles(t *testing.T) {
	t.Helper()
	t.Chdir(w.dir)
	week := peopleJobs(monday)
	w.writeTable("jobs.sacct", written["sacct"].header, week, written["sacct"].row)
	w.writeTable("jobs.squeue", written["squeue"].header, week, written["squeue"].row)
	var pods []string
	for i, job := range week {
		pods = append(pods,
			fmt.Sprintf(`{"kind":"Pod","metadata":{"uid":"u%d","name":"t%d","namespace":"lab","creationTimestamp":%q},`+
				`"spec":{"containers":[{"resources":{"limits":{"nvidia.com/gpu":"4"}}}]},`+
				`"status":{"phase":"Running","startTime":%q}}`,
				i, i, job.at.Format("2006-01-02T15:04:05Z"), job.at.Format("2006-01-02T15:04:05Z")))
	}
	require.NoError(t, os.WriteFile("pods.json", []byte(`{"kind":"List","items":[`+strings.Join(pods, ",")+"]}"),
		0o600))
	require.NoError(t, os.WriteFile(defaultConfig,
		[]byte("state_dir: "+w.pathOf("state")+"\nsources: [{kind: jobs, path: jobs.csv, format: csv}]\n"), 0o600))
}

var exampleLine = regexp.MustCompile(`^\s*(?:kubectl .*&& )?(?:bin/)?forewarm-agent (\S.*?)(?:\s{2,}.*)?$`)

// ourCommands are the command lines of this program in a text; those of other programs and without arguments
// are left out.
func ourCommands(text string) (lines []string) {
	for line := range strings.Lines(text) {
		if m := exampleLine.FindStringSubmatch(strings.TrimRight(line, "\n")); m != nil {
			lines = append(lines, m[1])
		}
	}
	return lines
}

func everyCommand(root *cobra.Command) (all []*cobra.Command) {
	all = append(all, root)
	for _, c := range root.Commands() {
		all = append(all, everyCommand(c)...)
	}
	return all
}

// Every example of --help and of the documentation runs as it stands. run alone would go on for ever: it is checked by
// one step.
func TestEveryExampleRuns(t *testing.T) {
	doc, err := os.ReadFile("../../docs/agent.md")
	require.NoError(t, err)
	examples := ourCommands(string(doc))
	for _, c := range everyCommand(newRoot(outside{})) {
		examples = append(examples, ourCommands(c.Example)...)
	}
	require.Greater(t, len(examples), 8)
	for _, line := range examples {
		t.Run(line, func(t *testing.T) {
			w := newHome(t)
			w.writeExampleFiles(t)
			args := strings.Fields(line)
			switch {
			case args[0] == "init":
				require.NoError(t, os.Remove(defaultConfig))
			case args[0] == "run" && len(args) < 4 && !strings.Contains(line, "--once") &&
				!strings.Contains(line, "--dry-run"):
				args = append(args, "--once")
			}
			var out, errs strings.Builder
			root := newRoot(outside{clock: w.clock, getenv: func(string) string { return w.dir }})
			root.SetArgs(args)
			root.SetOut(&out)
			root.SetErr(&errs)
			require.Equal(t, exitOK, executeCommand(t.Context(), root), "%s%s", out.String(), errs.String())
		})
	}
}

// The example file, and all that it shows switched off, loads; so does every block of YAML in the documentation.
func TestExampleConfigurationsLoad(t *testing.T) {
	t.Setenv("FOREWARM_AGENT_KEY", "k")
	t.Setenv("OPENAI_API_KEY", "k")
	data, err := os.ReadFile("../../deploy/forewarm-agent.example.yaml")
	require.NoError(t, err)
	_, _, err = loadConfig("../../deploy/forewarm-agent.example.yaml", nothingSet)
	require.NoError(t, err)
	head, body, found := strings.Cut(string(data), "\napi:")
	require.True(t, found)
	require.True(t, strings.HasPrefix(head, "#"))
	on := regexp.MustCompile(`(?m)^(\s*)# ?(\s*(?:- )?[a-z_]+:)`).ReplaceAllString("api:"+body, "$1$2")
	on = regexp.MustCompile(`(?m)^\s*key_file:.*$`).ReplaceAllString(on, "")
	path := filepath.Join(t.TempDir(), "on.yaml")
	require.NoError(t, os.WriteFile(path, []byte(on), 0o600))
	c, _, err := loadConfig(path, nothingSet)
	require.NoError(t, err, on)
	require.NotNil(t, c.LLM)
	require.Len(t, c.Sources, 2)

	doc, err := os.ReadFile("../../docs/agent.md")
	require.NoError(t, err)
	for _, block := range regexp.MustCompile("(?s)```ya?ml\n(.*?)```").FindAllStringSubmatch(string(doc), -1) {
		var keys map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(block[1]), &keys))
		_, _, err := loadConfig(writeConfig(t, wholeConfig(block[1])), nothingSet)
		require.NoError(t, err, block[1])
	}
}

// Every command line of all pages names a command that there is, with its flags.
func TestCommandLinesOfPages(t *testing.T) {
	t.Parallel()
	lines := pagetest.ReadLines(t, "../..", "forewarm-agent")
	require.GreaterOrEqual(t, len(lines), 10)
	for _, line := range lines {
		require.NoError(t, pagetest.Check(newRoot(outside{}), line.Args), "%s: forewarm-agent %s", line.Where,
			strings.Join(line.Args, " "))
	}
}
