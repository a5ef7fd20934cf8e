package cli

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/cli/exit"
)

// A variable of a script that is not set makes an empty argument: each command refuses it by the name that its usage
// line has for it, and asks the server nothing.
func TestAnEmptyArgumentIsRefused(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.env["FOREWARM_API"] = "http://127.0.0.1:1"
	tried := 0
	commands := leafCommands(w.newRoot())
	for _, path := range slices.Sorted(maps.Keys(commands)) {
		use := strings.Fields(commands[path].Use)
		if len(use) < 2 || !naming.MatchString(use[1]) || use[1] == "METHOD" {
			continue
		}
		for _, empty := range []string{"", " \t"} {
			tried++
			args := append(strings.Fields(path), empty)
			if strings.Contains(commands[path].Use, "KEY=VALUE") || strings.Contains(commands[path].Use, "WORD") {
				args = append(args, "a=b")
			} else if len(use) > 2 && (use[2] == "[LOCAL:]PORT" || !strings.ContainsAny(use[2][:1], "[-(")) {
				args = append(args, "8888")
			}
			_, errs, code := w.runCommand(append(args, strings.Fields(needed[path])...)...)
			require.Equal(t, exit.Usage, code, "%q: %s", args, errs)
			if path != "users create" && path != "key create" { // which have their arguments beside flags
				require.Contains(t, errs, "Error: "+strings.Trim(use[1], "[]")+" is empty\n", args)
			}
		}
	}
	require.Greater(t, tried, 60)
	for want, args := range map[string][]string{
		"JOB is empty":      {"jobs", "cancel", "job_1", ""},
		"COMMAND is empty":  {"run", "--", ""},
		"SCRIPT is empty":   {"sbatch", ""},
		"PATH is empty":     {"api", "GET", ""},
		"FROM is empty":     {"cp", "", "here"},
		"[LOCAL:]PORT is e": {"port", "alc_1", " "},
	} {
		_, errs, code := w.runCommand(args...)
		require.Equal(t, exit.Usage, code, errs)
		require.Contains(t, errs, want)
	}
}

// What runs elsewhere may be given empty arguments.
func TestAProgramMayHaveEmptyArguments(t *testing.T) {
	t.Parallel()
	w, s := newJobServer(t, endedWith(1, 0))
	w.mustRun("run", "-d", "--", "printf", "", " ")
	require.Equal(t, []string{"printf", "", " "}, s.sent.Command)
	script := filepath.Join(t.TempDir(), "a.sh")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\ntrue\n"), 0o600))
	w.mustRun("sbatch", script, "")
	require.Equal(t, "", s.sent.Command[len(s.sent.Command)-1])
}

// A name by which no job could be found later is refused where it is given; the file name of a script becomes one.
func TestNamesOfJobsCanBeAddressed(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.createPool()
	for _, name := range []string{"job_x", "arr_x", "  "} {
		_, errs, code := w.runCommand("run", "-d", "--pool", "lab", "--name", name, "--", "true")
		require.Equal(t, exit.Usage, code, errs)
		require.Regexp(t, `--name .* must `, errs)
	}
	script := filepath.Join(t.TempDir(), "job_train.sh")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\ntrue\n"), 0o600))
	w.mustRun("sbatch", "-p", "lab", "-H", script)
	require.Contains(t, w.mustRun("jobs", "show", "job-train.sh"), "job-train.sh")
}

// Numbers of GPUs that cannot all be meant are refused.
func TestGPUsThatAreFewerThanOneNodeHas(t *testing.T) {
	t.Parallel()
	w, s := newJobServer(t, newJob("pending", 0))
	_, errs, code := w.runCommand("run", "-d", "--gpus", "1", "--gpus-per-node", "2", "--", "true")
	require.Equal(t, exit.Usage, code, errs)
	require.Contains(t, errs, "--gpus 1: one node of --gpus-per-node 2 has more")
	require.Empty(t, s.asked)
	w.mustRun("run", "-d", "--gpus", "5", "--gpus-per-node", "4", "--", "true")
}

// JSON has text alone: bytes that are none would arrive as others.
func TestBytesThatAreNoTextAreRefused(t *testing.T) {
	t.Parallel()
	w, s := newJobServer(t, endedWith(1, 0))
	dir := t.TempDir()
	variables, script := filepath.Join(dir, "env"), filepath.Join(dir, "a.sh")
	require.NoError(t, os.WriteFile(variables, []byte("A=x\xffy\n"), 0o600))
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\n#SBATCH --job-name=x\xffy\ntrue\n"), 0o600))
	for want, args := range map[string][]string{
		`the argument "x\xffy" is not UTF-8`:    {"run", "--", "printf", "x\xffy"},
		`a script (--script), its standard inp`: {"run", "-d", "printf", "x\xffy"},
		`--env "A=x\xffy" is not UTF-8`:         {"run", "--env", "A=x\xffy", "--", "true"},
		`--name "x\xffy" is not UTF-8`:          {"run", "--name", "x\xffy", "--", "true"},
		`"A=x\xffy" is not UTF-8`:               {"run", "--env-file", variables, "--", "true"},
		`its standard input and forewarm cp`:    {"exec", "heron", "--", "printf", "x\xffy"},
		`what follows these lines may be any`:   {"sbatch", script},
		`the text of the script carries any`:    {"sbatch", "a.sh", "x\xffy"},
		`--job-name "x\xffy" is not UTF-8`:      {"sbatch", "--job-name", "x\xffy", "--wrap", "true"},
		`write it in UTF-8`:                     {"jobs", "show", "x\xffy"},
	} {
		_, errs, code := w.runCommand(args...)
		require.Equal(t, exit.Usage, code, "%q: %s", args, errs)
		require.Contains(t, errs, want, args)
	}
	require.Empty(t, s.asked)
	w.mustRun("sbatch", "--wrap", "printf 'x\xffy'")
	require.Contains(t, string(s.sent.Input), "x\xffy")
}
