package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// units is where the units are that admins install.
const units = "../../deploy/systemd/"

// clusterBlock is the agent's configuration in what an admin of a cluster reads.
func clusterBlock(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/slurm.md")
	require.NoError(t, err)
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		if strings.Contains(block[1], "sources:") { // it stands in a list
			return regexp.MustCompile(`(?m)^ {3}`).ReplaceAllString(strings.TrimRight(block[1], " "), "")
		}
	}
	require.Fail(t, "docs/slurm.md has no configuration of the agent")
	return ""
}

// slurm puts commands of a cluster first in the path of a script: each prints a file, with
// its cells parted as it is asked, by a mark for each bar or, where a file has tabs, for each
// of these. It fails where it is not asked for names and users.
func (w *home) slurm(t *testing.T, files map[string]string) (env []string) {
	t.Helper()
	bin := w.pathOf("bin")
	require.NoError(t, os.MkdirAll(bin, 0o700))
	for command, file := range files {
		text := "#!/bin/sh\n[ \"$SLURM_TIME_FORMAT\" = %s ] || exit 3\nfile='" + w.pathOf(file) + "'\n" +
			"mark=$(echo \"$*\" | grep -o '@[0-9a-f]*@' | head -n 1)\n[ -n \"$mark\" ] || exit 5\n" +
			"case \"$*\" in *User*Name*) ;; *) exit 4 ;; esac\n" +
			"if grep -q '\t' \"$file\"; then exec sed \"s/\t/$mark/g\" \"$file\"; fi\n" +
			"exec sed \"s/|/$mark/g\" \"$file\"\n"
		require.NoError(t, os.WriteFile(filepath.Join(bin, command), []byte(text), 0o700))
	}
	return []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "FOREWARM_ACCOUNTING=yes"}
}

// runHistory runs the program of the timer.
func runHistory(t *testing.T, folder string, env []string) (said string, err error) {
	t.Helper()
	cmd := exec.Command(units+"forewarm-history", folder)
	cmd.Env = env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// What the timer writes is what the documented configuration reads: people's jobs count,
// and Forewarm's own placeholders and heartbeats among them change nothing.
func TestTheHistoryOfACluster(t *testing.T) {
	t.Parallel()
	w := newHome(t)
	var said []string
	for _, own := range [][]work{nil, listPlaceholders(monday, false), listPlaceholders(monday, true)} {
		folder := t.TempDir()
		jobs := append(peopleJobs(monday), own...)
		w.writeTable("sacct.txt", written["sacct"].header, jobs, written["sacct"].row)
		lately := jobs[len(jobs)-len(own)-1:] // Slurm forgets what is over
		w.writeTable("squeue.txt", written["squeue"].header, lately, written["squeue"].row)
		out, err := runHistory(t, folder, w.slurm(t, map[string]string{"sacct": "sacct.txt", "squeue": "squeue.txt"}))
		require.NoError(t, err, out)
		text := strings.ReplaceAll(clusterBlock(t), "/var/lib/forewarm-history", folder)
		require.Contains(t, text, "key_file: /etc/forewarm/agent.key")
		text = strings.ReplaceAll(text, "/etc/forewarm/agent.key", w.pathOf("agent.key"))
		text = strings.Replace(text, "http://127.0.0.1:8787", w.url, 1)
		text = strings.Replace(text, "wait_worth: 32", "wait_worth: 500", 1)
		text = strings.Replace(text, "pool: a100", "pool: lab", 1) + "state_dir: " + t.TempDir() + "\n"
		require.NoError(t, os.WriteFile(w.pathOf("agent.key"), []byte(w.key+"\n"), 0o600))
		require.NoError(t, os.WriteFile(w.pathOf("agent.yaml"), []byte(text), 0o600))
		_, errs, code := w.runCommand(t.Context(), "run", "--once", "--log-format", "json")
		require.Equal(t, exitOK, code, errs)
		require.NotContains(t, errs, "cannot be read")
		said = append(said, forecastIn(errs))
	}
	require.Contains(t, said[0], "expects ")
	require.Equal(t, said[0], said[1])
	require.NotEqual(t, said[0], said[2], "as jobs of people they would have counted")
}

// A command that fails leaves the file of before, and is told; accounting is asked once an
// hour, the queue each time.
func TestAHistoryIsWholeOrAsBefore(t *testing.T) {
	t.Parallel()
	w := newHome(t)
	folder := t.TempDir()
	w.writeTable("first", written["squeue"].header, peopleJobs(monday), written["squeue"].row)
	w.writeTable("second", written["squeue"].header, nil, written["squeue"].row)
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(folder, name))
		require.NoError(t, err)
		return string(text)
	}
	out, err := runHistory(t, folder, w.slurm(t, map[string]string{"sacct": "first", "squeue": "first"}))
	require.NoError(t, err, out)
	before := read("jobs.squeue")
	require.Equal(t, before, read("jobs.sacct"))
	info, err := os.Stat(filepath.Join(folder, "jobs.squeue"))
	require.NoError(t, err)
	require.Zero(t, info.Mode().Perm()&0o007, "others can read it")

	out, err = runHistory(t, folder, w.slurm(t, map[string]string{"squeue": "nowhere"}))
	require.Error(t, err)
	require.Contains(t, out, "jobs.squeue stays as it was")
	require.Equal(t, before, read("jobs.squeue"))

	out, err = runHistory(t, folder, w.slurm(t, map[string]string{"sacct": "second", "squeue": "second"}))
	require.NoError(t, err, out)
	require.NotEqual(t, before, read("jobs.squeue"))
	require.Equal(t, before, read("jobs.sacct"), "accounting was asked within the hour")
	left, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, left, 2, "a part of a file was left")
}

// TestNobodyForgesAHistory: what users type into names and accounts makes no row, and moves no
// cell.
func TestNobodyForgesAHistory(t *testing.T) {
	t.Parallel()
	w := newHome(t)
	folder := t.TempDir()
	header := "JobID\tSubmit\tStart\tEnd\tElapsedRaw\tState\tAccount\tPartition\tReqTRES\tAllocTRES\tUser\tJobName\n"
	job := func(id, account, name string) string {
		return id + "\t1\t2\t3\t1\tCOMPLETED\t" + account + "\tgpu\tgres/gpu=1\tgres/gpu=1\tann\t" + name + "\n"
	}
	forged := strings.ReplaceAll(strings.TrimSpace(job("900", "vision", "forged")), "\t", "|")
	jobs := header + job("1", "vision", "plain") + job("2", "vision", "x\n"+forged) +
		job("3", "a|gpu|1|gres/gpu=9999", "bars|in|it") + job("4", "b\n"+forged, "lost") + job("5", "vision", "last")
	require.NoError(t, os.WriteFile(w.pathOf("jobs"), []byte(jobs), 0o600))
	out, err := runHistory(t, folder, w.slurm(t, map[string]string{"sacct": "jobs", "squeue": "jobs"}))
	require.NoError(t, err, out)
	text, err := os.ReadFile(filepath.Join(folder, "jobs.sacct"))
	require.NoError(t, err)
	var ids []string
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		require.Len(t, cells, 12, line)
		ids = append(ids, cells[0])
	}
	require.Equal(t, []string{"JobID", "1", "2", "3", "5"}, ids)
}

// The units of the agent and of its history are ones that systemd takes, where there is
// one, and start what the manual installs.
func TestUnitsOfTheAgent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	manual, err := os.ReadFile("../../deploy/README.md")
	require.NoError(t, err)
	var copies []string
	for _, name := range []string{"forewarm-agent.service", "forewarm-history.service", "forewarm-history.timer",
		"forewarm-worker-cluster.service"} {
		text, err := os.ReadFile(units + name) //nolint:gosec // our own files
		require.NoError(t, err)
		require.Contains(t, string(manual), name)
		copied := filepath.Join(dir, name)
		here := strings.ReplaceAll(string(text), "/usr/local/bin/", dir+"/")
		require.NoError(t, os.WriteFile(copied, []byte(here), 0o600))
		copies = append(copies, copied)
	}
	for _, program := range []string{"forewarm", "forewarm-agent", "forewarm-history"} {
		//nolint:gosec // systemd looks whether it can be run
		require.NoError(t, os.WriteFile(filepath.Join(dir, program), []byte("#!/bin/sh\n"), 0o755))
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		return // what is checked above is all that can be checked here
	}
	out, err := exec.Command(analyze, append([]string{"verify", "--man=no"}, copies...)...).CombinedOutput()
	require.NoError(t, err, string(out))
	require.Empty(t, string(out))
}
