package cli

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/contract"
)

// A job is waited for, what it writes is shown where it was written, and its exit code is the command's.
func TestRunShowsAJob(t *testing.T) {
	t.Parallel()
	waits := newJob(contract.JobPending, 0)
	waits.Detail, waits.Position = "all GPUs are held", 3
	w, s := newJobServer(t, waits, waits, newJob(contract.JobScheduled, 1), newJob(contract.JobRunning, 1),
		endedWith(1, 3))
	s.output["attempt=1&follow=true"] = cutAfter(pieces(1, 0, 0, "stdout", "one\n", "stderr", "two\n"))
	s.output["attempt=1&follow=true&offset=8"] = pieces(1, 0, 8, "stdout", "three")
	out, errs, code := w.runCommand("run", "--gpus", "2", "--pool", "lab", "--env", "A=b=c", "--", "train", "--lr", "3")
	require.Equal(t, 3, code)
	require.Equal(t, "one\nthree", out)
	require.Equal(t, "job_1  pending: all GPUs are held\njob_1  pending: all GPUs are held, place 3 in the queue\n"+
		"job_1  scheduled on 2 GPUs of lab\njob_1  running on 2 GPUs of lab\ntwo\n"+
		"Error: job_1 failed: exit code 3\nNext:  forewarm jobs logs job_1\n  or:  forewarm jobs show job_1\n", errs)
	require.Equal(t, contract.JobCreate{GPUs: 2, Pool: "lab", Command: []string{"train", "--lr", "3"},
		Environment: map[string]string{"A": "b=c"}}, s.sent)
}

// A job that has its GPUs and does not begin says why, once that takes long.
func TestRunSaysWhyAJobDoesNotBegin(t *testing.T) {
	t.Parallel()
	var looks []contract.Job
	for range 60 {
		looks = append(looks, newJob(contract.JobScheduled, 1))
	}
	w, s := newJobServer(t, append(looks, endedWith(1, 0))...)
	w.onPause = func() { w.clock.Advance(time.Second) }
	_, errs, code := w.runCommand("run", "--", "true")
	require.Zero(t, code, errs)
	require.Contains(t, errs, "job_1  scheduled on 2 GPUs of lab\n"+
		"job_1  scheduled on 2 GPUs of lab. No daemon is there.\njob_1  completed")
	explained := 0
	for _, line := range s.asked {
		if strings.HasSuffix(line, "/explain") {
			explained++
		}
	}
	require.Equal(t, 1, explained, "it is asked now and then")
}

// Each attempt's output is shown once, to its end, also when a server that ends cut it short.
func TestRunShowsEachAttempt(t *testing.T) {
	t.Parallel()
	lost := newJob(contract.JobPending, 1)
	w, s := newJobServer(t, newJob(contract.JobRunning, 1), newJob(contract.JobRunning, 1), lost,
		newJob(contract.JobScheduled, 2), endedWith(2, 0))
	s.output["attempt=1&follow=true"] = pieces(1, 0, 0, "stdout", "a")
	s.output["attempt=1&follow=true&offset=1"] = pieces(1, 0, 1, "stdout", "b")
	s.output["attempt=2&follow=true"] = pieces(2, 0, 0, "stdout", "c")
	out, errs, code := w.runCommand("run", "--", "true")
	require.Zero(t, code, errs)
	require.Equal(t, "abc", out)
	require.Contains(t, errs, "job_1  completed in 1m30s: 0.00 GPU-hours, $0.00\n")
}

// Of several nodes, each line says which one wrote it.
func TestRunMarksTheLinesOfNodes(t *testing.T) {
	t.Parallel()
	ended := endedWith(1, 0)
	ended.Nodes = 2
	w, s := newJobServer(t, ended)
	s.output["attempt=1&follow=true"] = pieces(1, 0, 0, "stdout", "he", "stderr", "oops\n", "stdout", "llo\nbye")
	s.output["attempt=1&follow=true&rank=1"] = pieces(1, 1, 0, "stdout", "\nx\n")
	out, errs, code := w.runCommand("run", "--nodes", "2", "--gpus-per-node", "4", "--", "true")
	require.Zero(t, code, errs)
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	require.ElementsMatch(t, []string{"[0] hello", "[0] bye", "[1] ", "[1] x"}, lines)
	require.Contains(t, errs, "[0] oops\n")
}

func TestRunDetached(t *testing.T) {
	t.Parallel()
	w, s := newJobServer(t, newJob(contract.JobPending, 0))
	out, errs, code := w.runCommand("run", "-d", "--retries", "2", "--checkpoint", "usr1@90s", "--max-runtime", "2h",
		"--not-before", "2026-03-02T12:00:00Z", "--after", "job_7:afterany", "--hold", "--", "true")
	require.Zero(t, code, errs)
	require.Equal(t, "job_1\n", out)
	require.Contains(t, errs, "forewarm jobs logs -f job_1")
	require.Equal(t, contract.JobCreate{Command: []string{"true"}, Hold: true, MaxRuntimeSeconds: 7200,
		Retries:      &contract.JobRetries{Failed: 2, Lost: 3},
		Checkpoint:   &contract.JobCheckpoint{Signal: "USR1", BeforeSeconds: 90},
		Dependencies: []contract.JobDependency{{JobID: "job_7", Condition: "afterany"}},
		NotBefore:    monday.Add(4 * 3600 * 1e9)}, s.sent)

	w.stdin = "the input"
	require.Equal(t, "arr_1", w.mustRun("run", "-d", "--array", "0-98:2", "--input", "-", "--", "true"))
	require.Equal(t, &contract.JobArray{First: 0, Last: 98, Step: 2}, s.sent.Array)
	require.Equal(t, "the input", string(s.sent.Input))
	for text, want := range map[string]contract.JobArray{"5": {First: 5, Last: 5}, "0-99%4": {Last: 99, Limit: 4},
		"20-22,0-4:2,15,2": {Indices: []int{0, 2, 4, 15, 20, 21, 22}}, "7,3%1": {Indices: []int{3, 7}, Limit: 1}} {
		w.mustRun("run", "-d", "--array", text, "--", "true")
		require.Equal(t, &want, s.sent.Array, text)
	}
}

// What cannot be is refused before anything is sent.
func TestRunRefuses(t *testing.T) {
	t.Parallel()
	w, s := newJobServer(t, newJob(contract.JobPending, 0))
	large := filepath.Join(t.TempDir(), "large")
	require.NoError(t, os.WriteFile(large, make([]byte, 1<<18+1), 0o600))
	for args, says := range map[string]string{
		"run":                                           "the command is missing",
		"run --array 0-9 -- true":                       "add --detach",
		"run -d --array 9-0 -- true":                    "--array 9-0: write indices and ranges",
		"run -d --array 1,,3 -- true":                   "write indices and ranges",
		"run -d --array 0-9%0 -- true":                  "how many run at once",
		"run -d --array 0-9999,20000 -- true":           "may have 10000 jobs",
		"run --checkpoint USR1@soon -- a":               "as in USR1@60s",
		"run --env A -- true":                           "--env A: must be NAME=VALUE",
		"run --env-file /no/such -- true":               "--env-file: ",
		"run --input " + large + " -- true":             "more than 192KiB",
		"run --not-before soon -- true":                 "is not a time",
		"run --script /no/such":                         "--script: ",
		"run --script testdata/jobs/train.sh --input -": "the script itself",
		"jobs cancel":                                   "JOB is missing",
		"jobs logs job_1 --rank 1":                      "is on 1 node, counted from 0",
		"jobs logs job_1 --attempt 2":                   "has had 0 attempts",
		"jobs logs job_1 --tail none":                   "must be a number of bytes",
		"jobs logs job_1 -o yaml":                       "comes in pieces",
		"jobs events job_1 -f -o yaml":                  "forewarm jobs events job_1 -f -o jsonl",
		"jobs events job_1 --last -1":                   "forewarm jobs events --help",
	} {
		_, errs, code := w.runCommand(strings.Fields(args)...)
		require.Equal(t, exit.Usage, code, "%s: %s", args, errs)
		require.Contains(t, errs, says, args)
	}
	for _, request := range s.asked {
		require.NotContains(t, request, "POST")
	}
}

// On the real server: a job waits for a boot, writes, and ends.
func TestRunToTheEnd(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.createPool()
	w.pauseWorking("writes hello", "warns careful", "ends 3")
	out, errs, code := w.runCommand("run", "--gpus", "8", "--nodes", "2", "--pool", "lab", "--", "train")
	require.Equal(t, 3, code, errs)
	require.ElementsMatch(t, []string{"[0] hello", "[1] hello"}, strings.Split(strings.TrimSpace(out), "\n"))
	require.Contains(t, errs, "] careful\n")
}

// Who interrupts run leaves a job that goes on, and is told how to come back to it.
func TestAnInterruptedRunGoesOn(t *testing.T) {
	t.Parallel()
	for s, code := range map[syscall.Signal]int{syscall.SIGINT: exit.Interrupt, syscall.SIGTERM: exit.Terminated} {
		w := newTown(t)
		w.createPool()
		ctx, interrupt := newInterruptibleContext(t, s)
		w.onPause = interrupt
		_, errs, got := w.runWithContext(ctx, "run", "--pool", "lab", "--", "train")
		require.Equal(t, code, got, errs)
		id := w.mustRun("jobs", "list", "-o", "name")
		require.Contains(t, errs, "Error: no longer following "+id+", which goes on\nNext:  forewarm jobs logs -f "+id+
			"\n  or:  forewarm jobs cancel "+id+"\n")
		require.Equal(t, s == syscall.SIGINT, strings.Contains(errs, id+" goes on. Ctrl-C again within 2s cancels it.\n"))
	}
}

// A second Ctrl-C cancels the job.
func TestARunThatIsInterruptedTwiceIsCancelled(t *testing.T) { //nolint:paralleltest // the signal is the process's
	w := newTown(t)
	w.createPool()
	ctx, interrupt := newInterruptibleContext(t, syscall.SIGINT)
	id, ended := "", make(chan struct{})
	w.onPause = func() {
		if id == "" {
			id = w.mustRun("jobs", "list", "-o", "name")
			interrupt()
			return
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGINT)
		<-ended // nobody waits for the end of the pause
	}
	_, errs, code := w.runWithContext(ctx, "run", "--pool", "lab", "--hold", "--", "train")
	close(ended)
	require.Equal(t, exit.Interrupt, code, errs)
	require.Contains(t, errs, "cancelled "+id+"\nNext:  forewarm jobs show "+id+"\n")
	require.Contains(t, w.mustRun("jobs", "show", id), "cancelled")
}

// What a script says of itself counts, unless the command line says otherwise.
func TestRunAScript(t *testing.T) {
	t.Parallel()
	w, s := newJobServer(t, newJob(contract.JobPending, 0))
	text, err := os.ReadFile("testdata/jobs/train.sh")
	require.NoError(t, err)
	_, errs, code := w.runCommand("run", "-d", "--script", "testdata/jobs/train.sh", "--env", "A=1", "--", "x", "y")
	require.Zero(t, code, errs)
	require.Contains(t, errs, "Note      testdata/jobs/train.sh: left out: --output: output is kept, and forewarm jobs "+
		"logs JOB shows it\n")
	want := contract.JobCreate{Name: "from-slurm", Pool: "demo-a100", GPUs: 2, MaxRuntimeSeconds: 1800, Priority: "low",
		Environment: map[string]string{"A": "1"}, Slurm: true,
		Command: []string{"/bin/sh", "-c", `eval "$(cat)"`, "train.sh", "x", "y"}}
	require.True(t, strings.HasSuffix(string(s.sent.Input), string(text)), "behind what stands for Slurm's programs")
	want.Input = s.sent.Input
	require.Equal(t, want, s.sent)

	_, errs, code = w.runCommand("run", "-d", "--script", "testdata/jobs/train.sh", "--nodes", "2", "--gpus-per-node", "4",
		"--model", "h100", "--max-runtime", "1h")
	require.Zero(t, code, errs)
	want.Pool, want.Model, want.GPUs, want.Layout = "", "h100", 0, contract.Layout{Nodes: 2, GPUsPerNode: 4}
	want.MaxRuntimeSeconds, want.Environment, want.Command = 3600, nil, want.Command[:4]
	require.Equal(t, want, s.sent)

	wrong := filepath.Join(t.TempDir(), "wrong.sh")
	for line, says := range map[string]string{"#FW --gpu 2": "there is no flag --gpu",
		"#FW --script x": "cannot name another",
		"#FW true":       `"true" is no flag`, "#SBATCH --exclusive": "--exclusive: name the pool",
		"#SBATCH -w n1":  "line 1: --nodelist: it cannot be had",
		"#FW --gpus two": `--gpus "two" is not a whole number`} {
		require.NoError(t, os.WriteFile(wrong, []byte(line+"\ntrue\n"), 0o600))
		_, errs, code := w.runCommand("run", "-d", "--script", wrong)
		require.Equal(t, exit.Usage, code, errs)
		require.Contains(t, errs, says)
	}
}

// To a terminal goes what cannot steer it, unless somebody wants all; elsewhere goes all.
func TestOutputToATerminal(t *testing.T) {
	t.Parallel()
	w, s := newJobServer(t, endedWith(1, 0))
	s.output["attempt=1"] = pieces(1, 0, 0, "stdout", "\x1b[31mred\x1b]0;ti", "stdout", "tle\x07\x1b[0m\n")
	const all, safe = "\x1b[31mred\x1b]0;title\x07\x1b[0m\n", "\x1b[31mred\x1b[0m\n"
	for _, c := range []struct {
		terminal bool
		args     string
		want     string
	}{{false, "jobs logs job_1", all}, {true, "jobs logs job_1", safe}, {true, "jobs logs job_1 --raw", all}} {
		w.terminal = c.terminal
		out, errs, code := w.runCommand(strings.Fields(c.args)...)
		require.Zero(t, code, errs)
		require.Equal(t, c.want, out)
	}
	s.output["attempt=1"] = pieces(1, 0, 0, "stdout", "\x1b[1;30mbold\n")
	s.output["attempt=1&follow=true"] = s.output["attempt=1"]
	for _, args := range []string{"jobs logs job_1", "jobs logs -f job_1"} {
		w.terminal = true
		out, _, _ := w.runCommand(strings.Fields(args)...)
		require.Equal(t, "\x1b[1;30mbold\n\x1b[0m", out, "what follows on the terminal is not bold")
		w.terminal = false
		out, _, _ = w.runCommand(strings.Fields(args)...)
		require.Equal(t, "\x1b[1;30mbold\n", out)
	}
}

// Where the middle of long output is not kept, its reader sees where and how much of it.
func TestLogsSayWhatIsLeftOut(t *testing.T) {
	t.Parallel()
	w, s := newJobServer(t, endedWith(1, 0))
	s.output["attempt=1"] = func(to http.ResponseWriter) {
		pieces(1, 0, 0, "stdout", "head\n")(to)
		pieces(1, 0, 1005, "stdout", "tail\n")(to)
	}
	for _, args := range []string{"jobs logs job_1", "jobs logs job_1 -o jsonl"} {
		out, errs, code := w.runCommand(strings.Fields(args)...)
		require.Zero(t, code, errs)
		require.Contains(t, errs, "… 1000 bytes left out here (5 to 1005): of long output its beginning and its end are "+
			"kept\n")
		require.Equal(t, strings.HasSuffix(args, "jsonl"), strings.Contains(out, `"left_out":1000`), out)
	}
}

// What was written before a time is left out, also where the rest is followed.
func TestLogsSince(t *testing.T) {
	t.Parallel()
	w, s := newJobServer(t, newJob(contract.JobRunning, 1), newJob(contract.JobRunning, 1), endedWith(1, 0))
	at := url.QueryEscape(w.clock.Now().Add(-10 * time.Minute).UTC().Format(time.RFC3339))
	s.output["attempt=1&follow=true&since="+at] = pieces(1, 0, 100, "stdout", "a")
	s.output["attempt=1&follow=true&offset=101"] = pieces(1, 0, 101, "stdout", "b")
	out, errs, code := w.runCommand("jobs", "logs", "job_1", "-f", "--since", "10m")
	require.Zero(t, code, errs)
	require.Equal(t, "ab", out)
	require.NotContains(t, errs, "left out")
	s.output["attempt=1&since="+at] = pieces(1, 0, 100, "stdout", "c")
	require.Equal(t, "c", w.mustRun("jobs", "logs", "job_1", "--since", "10m"))
	for args, says := range map[string]string{"--since 10m --tail 5": "--since and --tail cannot be given together",
		"--since soon": "is not a time"} {
		_, errs, code := w.runCommand(append([]string{"jobs", "logs", "job_1"}, strings.Fields(args)...)...)
		require.Equal(t, exit.Usage, code, errs)
		require.Contains(t, errs, says)
	}
}

// Files and secrets go with the job's input, and are shown nowhere.
func TestRunWithFiles(t *testing.T) {
	t.Parallel()
	w, s := newJobServer(t, newJob(contract.JobPending, 0))
	dir := t.TempDir()
	token, conf := filepath.Join(dir, "token"), filepath.Join(dir, "conf")
	require.NoError(t, os.WriteFile(token, []byte("s3cret"), 0o600))
	require.NoError(t, os.MkdirAll(filepath.Join(conf, "sub"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(conf, "sub", "a.yaml"), []byte("x"), 0o600))
	out, errs, code := w.runCommand("run", "-d", "--file", "testdata/jobs/train.sh", "--file", "settings/="+conf,
		"--secret", "TOKEN="+token, "--", "sh", "train.sh")
	require.Zero(t, code, errs)
	require.NotContains(t, out+errs, "s3cret")
	require.Equal(t, []string{"sh", "train.sh"}, s.sent.Command[4:])
	require.Contains(t, s.sent.Command[2], "TOKEN_FILE=")
	packed, err := gzip.NewReader(bytes.NewReader(s.sent.Input))
	require.NoError(t, err)
	var found []string
	for archive := tar.NewReader(packed); ; {
		entry, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		found = append(found, fmt.Sprintf("%o %s", entry.Mode, entry.Name))
	}
	require.Equal(t, []string{"700 .forewarm/", "700 .forewarm/secrets/", "600 settings/sub/a.yaml", "600 train.sh",
		"400 .forewarm/secrets/TOKEN"}, found)

	large := filepath.Join(dir, "large")
	require.NoError(t, os.WriteFile(large, make([]byte, 17<<20), 0o600))
	for args, says := range map[string]string{
		"--file /no/such":             "--file /no/such: ",
		"--file " + large:             "more than 16MiB",
		"--file /dev/zero":            "is no file",
		"--file ../x=" + token:        "below the job's folder",
		"--secret hunter2":            "write NAME=FILE",
		"--secret A=/no/such":         "--secret A=/no/such: ",
		"--dir /data --file " + token: "leave out its directory",
	} {
		_, errs, code := w.runCommand(append(append([]string{"run", "-d"}, strings.Fields(args)...), "--", "true")...)
		require.Equal(t, exit.Usage, code, "%s: %s", args, errs)
		require.Contains(t, errs, says, args)
	}
}
