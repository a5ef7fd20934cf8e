package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/contract"
)

// A script is submitted with the flags of sbatch, in both places, and what is printed is what scripts of others read.
func TestSbatch(t *testing.T) {
	t.Parallel()
	w, s := newJobServer(t, newJob(contract.JobPending, 0))
	dir := t.TempDir()
	path := filepath.Join(dir, "my job.sh")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/bash\n#SBATCH -p lab -N 2 --ntasks-per-node=4\n"+
		"#SBATCH --gpus-per-task=1 -A us\n#FW --retries 2\ntrue\n"), 0o600))
	out, errs, code := w.runCommand("sbatch", "-t", "1-0", "-p", "other", "--nice", "-o", "x", path, "-n", "--foo")
	require.Zero(t, code, errs)
	require.Equal(t, "Submitted batch job job_1\n", out)
	require.Contains(t, errs, "left out: --account: ")
	require.Contains(t, errs, "without --wait nobody is here to write files")
	require.Contains(t, string(s.sent.Input), "#SBATCH -p lab")
	s.sent.Input = nil
	require.Equal(t, contract.JobCreate{Name: "my-job.sh", Pool: "other", Slurm: true, MaxRuntimeSeconds: 86400,
		Layout: contract.Layout{Nodes: 2, GPUsPerNode: 4}, Retries: &contract.JobRetries{Failed: 2, Lost: 3},
		Command: []string{"/bin/bash", "-c", `eval "$(cat)"`, "my job.sh", "-n", "--foo"},
		Environment: map[string]string{"SLURM_NTASKS": "8", "SLURM_NPROCS": "8", "SLURM_NTASKS_PER_NODE": "4",
			"SLURM_GPUS_PER_TASK": "1"}}, s.sent)

	w.stdin = "#SBATCH -J piped\ntrue\n"
	out, errs, code = w.runCommand("sbatch", "--parsable", "-Q", "-A", "us")
	require.Zero(t, code)
	require.Equal(t, "job_1\n", out)
	require.Empty(t, errs)
	require.Equal(t, "piped", s.sent.Name)
	_, errs, _ = w.runCommand("sbatch", "--signal=USR1@120", "-t", "60", "--wrap", "true")
	require.NotContains(t, errs, "--signal")
	_, errs, _ = w.runCommand("sbatch", "--signal=USR1@7200", "-t", "60", "--wrap", "true")
	require.Contains(t, errs, "Note      wrap: --signal: of a job of 1h it comes 59m59s before the end, as early as can "+
		"be\n")
	require.Equal(t, int64(3599), s.sent.Checkpoint.BeforeSeconds)
	out, _, _ = w.runCommand("sbatch", "-a", "0-3", "--wrap", "exit 3")
	require.Equal(t, "Submitted batch job arr_1\n", out)
	require.Equal(t, "wrap", s.sent.Name)
	require.Contains(t, string(s.sent.Input), "#!/bin/sh\nexit 3\n")
	for line, says := range map[string]string{"-w n1 --wrap=true": "--nodelist: it cannot be had",
		"-n 3 -N 2 --wrap=true": "cannot be had",
		"--wait=no":             "takes no value", "--nosuch": "there is no flag --nosuch", "-t": "needs",
		"":          "it is empty",
		"nosuch.sh": "no such file", "--exclusive --wrap=true": "name the pool", "--wrap=true x": "no script beside it",
		"--gpus=1 --gpus-per-node=2 --wrap=true": "no multiple of --gpus-per-node",
		"-d singleton -a 0-1 -J x --wrap=true":   "--array 0-1%1 runs one"} {
		w.stdin = ""
		_, errs, code := w.runCommand(append([]string{"sbatch"}, splitWords(line)...)...)
		require.Equal(t, exit.Usage, code, line)
		require.Contains(t, errs, says, line)
	}
}

// With --wait the output of a job is written where sbatch would have it, and the command ends as the job did.
func TestSbatchWaits(t *testing.T) {
	t.Parallel()
	ended := endedWith(1, 3)
	ended.Nodes = 2
	pending := newJob(contract.JobPending, 0)
	pending.Nodes = 2
	dir := t.TempDir()
	run := func(flags ...string) {
		w, s := newJobServer(t, pending, ended)
		s.output["attempt=1&follow=true"] = pieces(1, 0, 0, "stdout", "one\n", "stderr", "bad\n")
		s.output["attempt=1&follow=true&rank=1"] = pieces(1, 1, 0, "stdout", "two\n")
		_, errs, code := w.runCommand(append(append([]string{"sbatch", "-W", "-J", "a/b"}, flags...), "--wrap", "true")...)
		require.Equal(t, 3, code, errs)
	}
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		return string(text)
	}
	run("-o", dir+"/%x-%5n.%j", "-e", dir+"/err.%N")
	require.Equal(t, "one\n", read("a_b-00000.job_1"))
	require.Equal(t, "two\n", read("a_b-00001.job_1"))
	require.Equal(t, "bad\n", read("err.node0"))
	require.Empty(t, read("err.node1"), "it is there, as a file of sbatch is")
	run("-o", dir+"/all%%%A.%a")
	const all, index = "[0] bad\n[0] one\n[1] two\n", "all%job_1.4294967294"
	require.Equal(t, all, sortedLines(read(index)))
	run("-o", dir+"/all%%%A.%a", "--open-mode=append")
	require.Len(t, read(index), 2*len(all))
	run("-o", dir+`/\%j`)
	require.Equal(t, all, sortedLines(read("%j")))

	w, _ := newJobServer(t, pending, ended)
	_, errs, code := w.runCommand("sbatch", "-W", "-o", dir+"/%q", "--wrap", "true")
	require.Equal(t, exit.Usage, code)
	require.Contains(t, errs, "--output "+dir+"/%q: %q stands for nothing: write %j, ")
	w, s := newJobServer(t, pending, ended)
	_, errs, code = w.runCommand("sbatch", "-W", "-e", dir+"/no/%j", "--wrap", "true")
	require.Equal(t, exit.Usage, code)
	require.Contains(t, errs, "--error "+dir+"/no/%j: there is no folder "+dir+"/no here: make it first")
	require.Contains(t, errs, "Next:  forewarm sbatch --help\n")
	require.Empty(t, s.asked, "nothing was submitted")
	_, errs, code = w.runCommand("sbatch", "-W", "-o", dir+"/%j/out", "--wrap", "true")
	require.Equal(t, exit.Failed, code)
	require.Contains(t, errs, "its output cannot be written here, and it goes on: ")
	require.Contains(t, errs, "Next:  forewarm jobs logs -f job_1\n")
}

// What is wrong is told by the flags of sbatch and of run, each by its own, with the value, the rule and what to do.
func TestWrongJobsAreToldByTheirFlags(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.createPool()
	const slurm, own = "sbatch --wrap=true ", "run -d --pool=lab "
	id := w.mustRun("run", "-d", "--hold", "--pool", "lab", "--", "true")
	for line, says := range map[string]string{
		slurm + "-p nosuch":                                 `Error: --partition: There is no pool "nosuch".`,
		slurm + "-p lab -t 99-0":                            "Error: --time 99-0 must be at most 30d",
		slurm + "-p lab -d afterok:nosuch":                  "Error: --dependency nosuch: there is no job or array",
		slurm + "-p lab --signal=FOO@60":                    "Error: --signal FOO@60 must be one of USR1,",
		slurm + "-p lab -J " + strings.Repeat("x", 64):      "x must be at most 63 characters long",
		slurm + "-p lab -C a;b":                             `Error: --constraint "a;b": must have at most 63 letters`,
		slurm + "-p lab -x foo":                             `Error: --exclude foo must be the id of a node`,
		slurm + "-p lab -n 0":                               `wrap: --ntasks: "0" must be a whole number of 1 or more`,
		slurm + "-p lab -a 5-3":                             "Error: --array 5-3: write indices and ranges",
		slurm + "--exclusive":                               "Error: --exclusive: name the pool",
		own + "--max-runtime 60s --checkpoint USR1 -- true": "which is 1m (without a time it is 60s)",
		own + "--constraint a;b -- true":                    `Error: --constraint "a;b": must have at most 63 letters`,
		own + "--prefer a;b -- true":                        `Error: --prefer "a;b": must have at most 63 letters`,
		own + "--tolerate a;b -- true":                      `Error: --tolerate "a;b": must have at most 63 letters`,
		own + "--exclude foo -- true":                       `Error: --exclude foo must be the id of a node`,
		"jobs edit " + id + " --to-pool nosuch":             `Error: --to-pool: There is no pool "nosuch".`,
		"jobs edit " + id + " --pool nosuch":                `Error: --to-pool: There is no pool "nosuch".`,
		"jobs edit " + id + " --max-runtime 0s":             "Error: --max-runtime 0s must be longer than 0s",
		"jobs list --since yesterday":                       `Error: --since "yesterday" is not a time`,
		"jobs logs " + id + " --since yesterday":            `Error: --since "yesterday" is not a time`,
		"reservations list --until yesterday":               `Error: --until "yesterday" is not a time`,
	} {
		_, errs, _ := w.runCommand(strings.Fields(line)...)
		require.Contains(t, errs, says, line)
		c, _, err := w.newRoot().Find(strings.Fields(line))
		require.NoError(t, err)
		require.Regexp(t, "  (forewarm jobs list --all|"+c.CommandPath()+" --help)\n", errs, line)
	}
}

// sortedLines are the lines of what two streams wrote in any order.
func sortedLines(text string) string {
	lines := slices.Collect(strings.Lines(text))
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// Nothing is submitted for a test, which says when a job would start; those of one name wait for each other.
func TestSbatchOnAServer(t *testing.T) {
	t.Parallel()
	w := newVillage(t)
	out, errs, code := w.runCommand("sbatch", "--test-only", "-p", "demo-a100", "-G", "2", "--wrap", "true")
	require.Zero(t, code, errs)
	require.Regexp(t, `^Nothing was submitted\. 1 job of 2 GPUs on 1 node would start: in .*, likely `, out)
	out, _, _ = w.runCommand("sbatch", "--test-only", "-H", "-p", "demo-a100", "-a", "0-8", "--wrap", "true")
	require.Contains(t, out, "9 jobs of 1 GPU on 1 node would start: when it is released")
	_, _, code = w.runCommand("sbatch", "--test-only", "-p", "nosuch", "--wrap", "true")
	require.Equal(t, exit.NotFound, code)
	require.NotContains(t, w.mustRun("jobs", "list", "--all", "-o", "jsonl"), `"wrap"`)

	one := w.mustRun("sbatch", "--parsable", "-H", "-J", "alone", "-p", "demo-a100", "--wrap", "true")
	two := w.mustRun("sbatch", "--parsable", "-J", "alone", "-d", "singleton", "-p", "demo-a100", "--wrap", "true")
	require.Equal(t, one+" afterany", w.mustRun("jobs", "show", two, "--jq",
		`.dependencies[] | "\(.job_id) \(.condition)"`))
	whole := w.mustRun("sbatch", "--parsable", "-p", "demo-a100", "--exclusive", "-G", "5", "--wrap", "true")
	require.Equal(t, "2 8", w.mustRun("jobs", "show", whole, "--jq", `"\(.nodes) \(.gpus)"`))
}
