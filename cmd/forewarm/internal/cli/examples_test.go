package cli

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

// village is a town in which everything is there that examples name.
func village(t *testing.T) *town {
	t.Helper()
	w := newTown(t)
	w.dir = t.TempDir()
	for _, p := range []string{"demo-a100", "spare"} {
		w.must("pools", "create", p, "--provisioner", "sim", "--model", "a100-80g", "--instance-type", "sim-4xa100",
			"--gpus-per-node", "4", "--memory", "80", "--max-nodes", "3", "--price", "12.80", "--simulated")
	}
	w.must("orgs", "create", "beta", "--max-gpus", "4", "--speculation-per-day", "10")
	w.must("users", "create", "ada@example.com", "--role", "member")
	w.must("key", "create", "ci", "--role", "viewer")
	w.must("allocate", "--gpus", "1", "--pool", "demo-a100", "--name", "otter", "--for", "2h", "--wait")
	w.must("reserve", "--gpus", "1", "--pool", "demo-a100", "--at", "in 2m", "--for", "1h", "--name", "nightly")
	w.must("reserve", "--gpus", "1", "--pool", "demo-a100", "--at", "mon 20:00", "--for", "1h", "--every", "daily", "--name", "standup")
	w.must("api", "POST", "/v1/forecasts", "-d", forecastOf(w.must("pools", "show", "demo-a100", "--jq", ".id"), w.clock.Now().Add(time.Hour)))
	require.NoError(t, os.WriteFile(filepath.Join(w.dir, "my.key"), []byte(w.secret+"\n"), 0o600))
	w.must("login", "--name", "default")
	w.live(time.Minute)
	return w
}

func forecastOf(pool string, start time.Time) string {
	at := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
	return `{"forecasts":[{"id":"fct_06h05jkfp1rxn8ak4tjdkaxhc4","pool_id":"` + pool + `","start":"` + at(start) + `","end":"` + at(start.Add(time.Hour)) +
		`","gpus":{"p10":1,"p50":2,"p90":4,"mean":2.2},"baseline_probability":0.5,"probability":0.8,"source":"statistics","reason_code":"recurring_pattern","issued_at":"` + at(start.Add(-time.Hour)) + `"}]}`
}

// real puts what is there in the places of an example's ids, files and servers.
func (w *town) real(command string) []string {
	line := command
	for prefix, find := range map[string][]string{
		"nod_": {"nodes", "list", "--jq", ".[0].id"},
		"dec_": {"decisions", "list", "--jq", ".[0].id"},
		"fct_": {"forecasts", "list", "--jq", ".[0].id"},
		"pln_": {"plan", "allocate", "--gpus", "1", "--pool", "demo-a100", "--jq", ".id"},
		"GPU-": {"gpus", "list", "--jq", ".[0].uuid"},
	} {
		if form := regexp.MustCompile(prefix + `[-\w]{26,}`); form.MatchString(line) {
			line = form.ReplaceAllLiteralString(line, w.must(append(find, "-q")...))
		}
	}
	line = strings.NewReplacer("https://forewarm.example.com", w.url, "my.key", filepath.Join(w.dir, "my.key"), "agent.key", filepath.Join(w.dir, "agent.key"),
		"./man", filepath.Join(w.dir, "man"), `\'`, `'`).Replace(line)
	return words(strings.TrimPrefix(line, "forewarm "))
}

// prepareFor brings a village into the state that a command is for.
func (w *town) prepareFor(path string) {
	switch path {
	case "nodes resume":
		w.must("nodes", "drain", w.must("nodes", "list", "--jq", ".[0].id"))
	case "prewarm resume":
		w.must("prewarm", "pause")
	case "recovery confirm":
		w.must("recovery", "begin")
	case "schedules resume":
		w.must("schedules", "pause", "standup")
	}
}

// run one example as it stands, and then with more words.
func (w *town) example(line string, more ...string) (stdout, stderr string, code int) {
	w.t.Helper()
	if before, after, piped := strings.Cut(line, " | "); piped {
		require.Equal(w.t, "pass forewarm", before)
		w.stdin, line = w.secret+"\n", after
	}
	args := append(w.real(line), more...)
	if !slices.Contains(args, "-f") {
		return w.forewarm(args...)
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Second) // following has no other end
	defer cancel()
	stdout, stderr, code = w.run(ctx, args...)
	require.Equal(w.t, ExitInterrupt, code)
	return stdout, stderr, ExitOK
}

// everything is what the installation holds, as far as anybody can see.
func (w *town) everything() string {
	var b strings.Builder
	for _, command := range []string{"pools list", "nodes list --all", "allocations list --all", "reservations list --all", "schedules list", "orgs list",
		"users list", "prewarm status", "recovery show", "contexts list", "events --last 0"} {
		b.WriteString(w.must(append(strings.Fields(command), "-o", "jsonl")...) + "\n")
	}
	b.WriteString(w.must("key", "list", "--jq", "[.[] | del(.last_used_at)]"))
	return b.String()
}

// lines are the examples of a command.
func lines(c *cobra.Command) []string {
	var all []string
	for l := range strings.Lines(c.Example) {
		all = append(all, strings.TrimSpace(l))
	}
	return all
}

// Every command has examples, which run as they stand. In a dry run they succeed
// as well, and change nothing.
func TestExamples(t *testing.T) {
	t.Parallel()
	shared := village(t)
	before := shared.everything()
	commands := leaves(shared.root())
	changing := map[string]bool{}
	for _, path := range slices.Sorted(maps.Keys(commands)) {
		if name := commands[path].Name(); name == "help" || strings.HasPrefix(path, "completion") {
			continue
		}
		require.NotEmpty(t, commands[path].Example, "%s has no example", path)
		w := shared
		switch path {
		case "nodes resume", "prewarm resume", "recovery confirm", "schedules resume":
			w = village(t)
			w.prepareFor(path)
		}
		was := w.everything()
		for _, l := range lines(commands[path]) {
			_, errs, code := w.example(l, "-n")
			require.Zero(t, code, "%s -n: %s", l, errs)
			changing[path] = changing[path] || strings.Contains(errs, "Dry run")
			if !strings.Contains(errs, "Dry run") {
				_, errs, code = w.example(l)
				require.Zero(t, code, "%s: %s", l, errs)
			}
		}
		require.Equal(t, was, w.everything(), "%s -n changed something", path)
	}
	require.Equal(t, before, shared.everything())
	for path := range changing {
		if changing[path] {
			t.Run(path, func(t *testing.T) { t.Parallel(); reallyRun(t, path) })
		}
	}
	for _, path := range []string{"release", "nodes drain", "quota set", "pools edit", "apply", "key create", "login", "schedules pause", "prewarm pause"} {
		require.True(t, changing[path], path)
	}
}

// reallyRun runs the examples of a command that changes something.
func reallyRun(t *testing.T, path string) {
	w := village(t)
	w.prepareFor(path)
	for _, l := range lines(leaves(w.root())[path]) {
		_, errs, code := w.example(l)
		require.Zero(t, code, "%s: %s", l, errs)
	}
}
