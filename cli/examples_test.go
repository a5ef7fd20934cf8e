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

	"github.com/forewarm/forewarm/cli/exit"
)

// newVillage is a town in which everything is there that examples name.
func newVillage(t *testing.T) *town {
	t.Helper()
	w := newTown(t)
	w.dir = t.TempDir()
	for _, p := range []string{"demo-a100", "spare"} {
		w.mustRun("pools", "create", p, "--provisioner", "sim", "--model", "a100-80g", "--instance-type", "sim-4xa100",
			"--gpus-per-node", "4", "--memory", "80", "--max-nodes", "3", "--price", "12.80", "--simulated")
	}
	w.mustRun("orgs", "create", "beta", "--max-gpus", "4", "--speculation-per-day", "10")
	w.mustRun("users", "create", "ada@example.com", "--role", "member")
	w.mustRun("key", "create", "ci", "--role", "viewer")
	w.mustRun("allocate", "--gpus", "1", "--pool", "demo-a100", "--name", "otter", "--for", "2h", "--wait")
	w.createTower()
	w.mustRun("allocate", "--gpus", "1", "--pool", "tower", "--name", "heron", "--for", "2h", "--wait")
	w.attachDaemons("heron")
	require.NoError(t, os.WriteFile(filepath.Join(w.dir, "train.py"), []byte("print(1)\n"), 0o600))
	w.mustRun("reserve", "--gpus", "1", "--pool", "demo-a100", "--at", "in 2m", "--for", "1h", "--name", "nightly",
		"--for-jobs", "none")
	w.mustRun("reserve", "--gpus", "1", "--pool", "demo-a100", "--at", "mon 20:00", "--for", "1h", "--every", "daily",
		"--name", "standup")
	w.mustRun("api", "POST", "/v1/forecasts", "-d", forecastOf(w.mustRun("pools", "show", "demo-a100", "--jq", ".id"),
		w.clock.Now().Add(time.Hour)))
	history, err := os.ReadFile("testdata/slurm/elastic/sacct.txt")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(w.dir, "jobs.sacct"), history, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(w.dir, "my.key"), []byte(w.secret+"\n"), 0o600))
	w.mustRun("login", "--name", "default")
	w.submitExamples()
	w.passTime(time.Minute)
	return w
}

// submitExamples submits a job that is over, one that runs, one that waits, and an array.
func (w *town) submitExamples() {
	w.t.Helper()
	w.mustRun("run", "-d", "--pool", "demo-a100", "--name", "prepare", "--", "true")
	w.startJobs()
	w.workOnJobs("writes prepared")
	w.workOnJobs("ends 0")
	w.mustRun("run", "-d", "--pool", "demo-a100", "--name", "train", "--", "true")
	w.startJobs()
	w.workOnJobs("writes training")
	w.mustRun("run", "-d", "--pool", "demo-a100", "--name", "later", "--not-before", "tomorrow 09:00", "--", "true")
	w.mustRun("run", "-d", "--pool", "demo-a100", "--name", "sweep", "--array", "0-3", "--hold", "--", "true")
	script, err := os.ReadFile("testdata/jobs/train.sh")
	require.NoError(w.t, err)
	require.NoError(w.t, os.WriteFile(filepath.Join(w.dir, "train.sh"), script, 0o600))
}

func forecastOf(pool string, start time.Time) string {
	at := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
	return `{"forecasts":[{"id":"fct_06h05jkfp1rxn8ak4tjdkaxhc4","pool_id":"` + pool + `","start":"` + at(start) +
		`","end":"` + at(start.Add(time.Hour)) +
		`","gpus":{"p10":1,"p50":2,"p90":4,"mean":2.2},"baseline_probability":0.5,"probability":0.8,` +
		`"source":"statistics","reason_code":"recurring_pattern","issued_at":"` + at(start.Add(-time.Hour)) + `"}]}`
}

// realIDs puts the ids of what is there in the places of a text's.
func (w *town) realIDs(text string) string {
	for prefix, find := range map[string][]string{
		"nod_": {"nodes", "list", "--jq", ".[0].id"},
		"dec_": {"decisions", "list", "--jq", ".[0].id"},
		"fct_": {"forecasts", "list", "--jq", ".[0].id"},
		"pln_": {"plan", "allocate", "--gpus", "1", "--pool", "demo-a100", "--jq", ".id"},
		"GPU-": {"gpus", "list", "--jq", ".[0].uuid"},
		"arr_": {"jobs", "list", "--name", "sweep", "--jq", ".[0].array_id"},
		"job_": {"jobs", "list", "--name", "train", "--jq", ".[0].id"},
	} {
		if form := regexp.MustCompile(prefix + `[-\w]{26,}`); form.MatchString(text) {
			text = form.ReplaceAllLiteralString(text, w.mustRun(append(find, "-q")...))
		}
	}
	return text
}

// realNames puts what is there in the places of an example's ids, files and servers.
func (w *town) realNames(command string) []string {
	line := strings.NewReplacer("https://forewarm.example.com", w.url, "my.key", filepath.Join(w.dir, "my.key"),
		"agent.key", filepath.Join(w.dir, "agent.key"), "jobs.sacct", filepath.Join(w.dir, "jobs.sacct"),
		"./train.py", filepath.Join(w.dir, "train.py"),
		"train.sh", filepath.Join(w.dir, "train.sh"), "./copy.py", filepath.Join(w.dir, "copy.py"), " 8888", " 0:8888",
		"./man", filepath.Join(w.dir, "man"), `\'`, `'`).Replace(w.realIDs(command))
	return splitWords(strings.TrimPrefix(line, "forewarm "))
}

// runExample runs a line as it stands, or with more words.
func (w *town) runExample(line string, more ...string) (stdout, stderr string, code int) {
	w.t.Helper()
	if before, after, piped := strings.Cut(line, " | "); piped {
		require.Equal(w.t, "pass forewarm", before)
		w.stdin, line = w.secret+"\n", after
	}
	line, _, _ = strings.Cut(line, " > ")
	if before, _, shell := strings.Cut(line, ` "$(cat `); shell {
		line = before + " " + w.mustRun("audit", "verify", "-o", "name", "-q")
	}
	args := w.realNames(line)
	end := len(args)
	if at := slices.Index(args, "--"); at >= 0 {
		end = at // what follows is somebody else's
	}
	args = slices.Insert(args, end, slices.DeleteFunc(more, func(word string) bool { return word == "" })...)
	if !slices.Contains(args, "-f") && args[0] != "port" {
		return w.runCommand(args...)
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Second) // following has no other end
	defer cancel()
	stdout, stderr, code = w.runWithContext(ctx, args...)
	require.Contains(w.t, []int{exit.Interrupt, exit.OK}, code)
	return stdout, stderr, exit.OK
}

// readEverything is what the installation holds, as far as anybody can see.
func (w *town) readEverything() string {
	var b strings.Builder
	for _, command := range []string{"pools list", "nodes list --all", "allocations list --all",
		"reservations list --all", "schedules list", "orgs list",
		"users list", "jobs list --all", "prewarm status", "recovery show", "contexts list", "events --last 0"} {
		b.WriteString(w.mustRun(append(strings.Fields(command), "-o", "jsonl")...) + "\n")
	}
	b.WriteString(w.mustRun("key", "list", "--jq", "[.[] | del(.last_used_at)]"))
	return b.String()
}

// exampleLines are the examples of a command.
func exampleLines(c *cobra.Command) []string {
	var all []string
	for l := range strings.Lines(c.Example) {
		all = append(all, strings.TrimSpace(l))
	}
	return all
}

// resuming are the commands for what was stopped before.
var resuming = map[string][]string{
	"nodes resume": {"nodes", "drain"}, "schedules resume": {"schedules", "pause", "standup"},
	"jobs release": {"jobs", "hold", "later"}, "prewarm resume": {"prewarm", "pause"},
	"recovery confirm": {"recovery", "begin"},
}

// changes are the commands that change something, in an order in which one
// village can take all of them, and those that need one of their own.
var changes = [][]string{
	{"plan allocate", "plan reserve", "plan quota", "plan pool", "allocate", "extend", "release", "reserve",
		"reservations cancel", "schedules pause", "schedules resume", "schedules delete",
		"pools create", "pools edit", "pools label", "pools taint", "pools delete",
		"orgs create", "quota set", "orgs delete", "users create",
		"users caps", "users delete",
		"key create", "key adopt", "key revoke", "api", "apply", "prewarm pause", "prewarm resume", "nodes join",
		"nodes label", "nodes taint", "nodes drain",
		"nodes resume", "recovery begin",
		"recovery confirm", "nodes quarantine", "login", "contexts use", "contexts delete", "man"},
	{"exec", "cp", "port"},
	{"jobs edit", "jobs hold", "jobs release", "jobs requeue", "jobs cancel", "run", "sbatch"},
	{"plan claim", "plan cancel", "plan release", "reservations claim"},
}

// Every command has examples, which run as they stand.
func TestExamples(t *testing.T) {
	t.Parallel()
	var changing []string
	for _, batch := range changes {
		changing = append(changing, batch...)
		t.Run(batch[0], func(t *testing.T) {
			t.Parallel()
			w := newVillage(t)
			w.pauseWorking("ends 0")
			for _, path := range batch {
				w.examplesOf(path)
			}
		})
	}
	t.Run("reading", func(t *testing.T) {
		t.Parallel()
		w := newVillage(t)
		for _, path := range slices.Sorted(maps.Keys(leafCommands(w.newRoot()))) {
			if !slices.Contains(changing, path) && isOwnCommand(path) {
				w.examplesOf(path)
			}
		}
	})
}

// isOwnCommand reports whether a command is not one that cobra brings.
func isOwnCommand(path string) bool { return path != "help" && !strings.HasPrefix(path, "completion") }

func (w *town) examplesOf(path string) {
	w.t.Helper()
	c := leafCommands(w.newRoot())[path]
	require.NotNil(w.t, c, path)
	require.NotEmpty(w.t, c.Example, "%s has no example", path)
	for _, l := range exampleLines(c) {
		_, errs, code := w.runExample(l)
		require.Zero(w.t, code, "%s: %s", l, errs)
	}
}

// dryLine is an example as a dry run. What follows a script is the script's, and -n is a number of tasks there.
func dryLine(path, line string) (dry, more string) {
	if path == "sbatch" {
		return strings.Replace(line, "sbatch", "sbatch --dry-run", 1), ""
	}
	return line, "-n"
}

// A dry run of every command succeeds, says that it was one if the command
// changes something, and changes nothing.
func TestDryRuns(t *testing.T) {
	t.Parallel()
	working, stopped := newVillage(t), newVillage(t)
	for _, command := range resuming {
		if command[0] == "nodes" {
			command = append(slices.Clone(command), stopped.mustRun("nodes", "list", "--jq", ".[0].id"))
		}
		stopped.mustRun(command...)
	}
	before := map[*town]string{working: working.readEverything(), stopped: stopped.readEverything()}
	for path, c := range leafCommands(working.newRoot()) {
		w := working
		if resuming[path] != nil {
			w = stopped
		}
		if !isOwnCommand(path) {
			continue
		}
		dry := false
		for _, l := range exampleLines(c) {
			_, errs, code := w.runExample(dryLine(path, l))
			require.Zero(t, code, "%s -n: %s", l, errs)
			dry = dry || strings.Contains(errs, "Dry run: nothing was ")
		}
		plans := strings.HasPrefix(path, "plan ")
		known := slices.ContainsFunc(changes, func(batch []string) bool { return slices.Contains(batch, path) })
		require.Equal(t, known && !plans, dry && !plans, "%s: does it change something?", path)
		if dry {
			require.Equal(t, before[w], w.readEverything(), "%s -n changed something", path)
		}
	}
}
