package cli

import (
	"context"
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/cli/exit"
)

var shellBlock = regexp.MustCompile("(?s)```(?:sh|console)\n(.*?)```")

// usageBlocks are what a page tells people to type, below a heading; empty: all.
func usageBlocks(t *testing.T, name, heading string) []string {
	t.Helper()
	page, err := os.ReadFile("../docs/" + name)
	require.NoError(t, err)
	text := string(page)
	if heading != "" {
		_, after, found := strings.Cut(text, "\n## "+heading+"\n")
		require.True(t, found, heading)
		text, _, _ = strings.Cut(after, "\n## ")
	}
	var blocks []string
	for _, block := range shellBlock.FindAllStringSubmatch(text, -1) {
		blocks = append(blocks, regexp.MustCompile(`(?m)^\$ `).ReplaceAllString(block[1], ""))
	}
	require.NotEmpty(t, blocks)
	return blocks
}

// recorder stands in for forewarm at a prompt: it keeps what it is given.
const recorder = "#!/bin/sh\nprintf '%s\\0' \"$@\" | base64 -w0 | sed 's/$/\\n/' >> \"$RECORD\"\n"

// typed are the words of each of our commands that a shell runs for some lines.
func typed(t *testing.T, text string) (all [][]string) {
	t.Helper()
	dir := t.TempDir()
	record := filepath.Join(dir, "record")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "forewarm"), []byte(recorder), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "curl"), []byte("#!/bin/sh\n"), 0o700))
	shell := exec.Command("sh", "-euc", text+"\nwait")
	shell.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "RECORD="+record)
	out, err := shell.CombinedOutput()
	require.NoError(t, err, "%s: %s", text, out)
	lines, err := os.ReadFile(record)
	require.NoError(t, err, text)
	for line := range strings.Lines(string(lines)) {
		words, err := base64.StdEncoding.DecodeString(strings.TrimSpace(line))
		require.NoError(t, err)
		all = append(all, strings.Split(strings.TrimSuffix(string(words), "\x00"), "\x00"))
	}
	return all
}

// Every line of the pages about using GPUs is one that a shell reads, and of ours one
// that the command understands.
func TestLinesAboutUse(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	lines := 0
	for _, block := range append(usageBlocks(t, "using-an-allocation.md", ""), usageBlocks(t, "jobs.md", "")...) {
		for _, words := range typed(t, block) {
			c, rest, err := w.newRoot().Find(words)
			require.NoError(t, err, words)
			require.NotEqual(t, "forewarm", c.Name(), words)
			require.NoError(t, c.ParseFlags(rest), words)
			require.NoError(t, c.ValidateArgs(c.Flags().Args()), words)
			lines++
		}
	}
	require.GreaterOrEqual(t, lines, 35)
}

// What the page about jobs tells people to type is done as it stands, by a shell and as a dry run, where there is what
// it names.
func TestLinesAboutJobs(t *testing.T) { // not in parallel: its files are where it runs
	w, blocks := newVillage(t), usageBlocks(t, "jobs.md", "")
	w.mustRun("pools", "create", "lab", "--provisioner", "sim", "--model", "a100-80g", "--instance-type", "sim-4xa100",
		"--gpus-per-node", "4", "--memory", "80", "--max-nodes", "3", "--price", "12.80", "--simulated")
	w.mustRun("jobs", "cancel", "sweep", "--yes")
	sweep := func() {
		w.mustRun("run", "-d", "--pool", "demo-a100", "--name", "sweep", "--array", "0-9", "--", "true")
	}
	sweep()
	t.Chdir(w.dir)
	t.Setenv("HOME", w.dir)
	require.NoError(t, os.Mkdir("conf", 0o700))
	for _, name := range []string{"train.env", "prompts.txt", ".token", "conf/a"} {
		require.NoError(t, os.WriteFile(name, []byte("A=1\n"), 0o600))
	}
	w.pauseWorking("ends 0")
	lines := 0
	for _, block := range blocks {
		for _, words := range typed(t, w.realIDs(block)) {
			if slices.Equal(words, []string{"jobs", "cancel", "sweep"}) {
				sweep() // the one before has been waited for
			}
			w.dryRun(words)
			lines++
		}
	}
	require.GreaterOrEqual(t, lines, 30)
}

// dryRun runs a command line as a dry run; what follows something does so for a second, as it has no other end.
func (w *town) dryRun(words []string) {
	w.t.Helper()
	ctx, want := w.t.Context(), []int{exit.OK}
	if slices.Contains(words, "-f") {
		bounded, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		ctx, want = bounded, []int{exit.OK, exit.Interrupt}
	}
	_, errs, code := w.runWithContext(ctx, slices.Insert(slices.Clone(words), 1, "--dry-run")...)
	require.Contains(w.t, want, code, "%v: %s", words, errs)
}

// launchers stand in for programs that take GPUs: they tell what they are given.
var launchers = map[string]string{
	"torchrun": "echo \"torchrun $*\"; cat train.py",
	"vllm":     "echo \"$CUDA_DEVICE_ORDER $CUDA_VISIBLE_DEVICES $HF_HOME vllm $*\"",
	"nvidia-smi": `[ "$1" = -i ] && [ "$3 $4" = "--query-gpu=index --format=csv,noheader" ] || exit 1
n=3; for uuid in $(echo "$2" | tr , ' '); do n=$((n + 1)); echo $n; done`,
}

// launchAsWritten runs the sessions of a section of the page, and returns what they print.
func (w *town) launchAsWritten(section, allocation string) (printed string) {
	w.t.Helper()
	venv := newOpenDir(w.t)
	for name, script := range launchers {
		require.NoError(w.t, os.WriteFile(filepath.Join(venv, name), //nolint:gosec // users of holds run it
			[]byte("#!/bin/sh\n"+script+"\n"), 0o755))
	}
	for _, block := range usageBlocks(w.t, "using-an-allocation.md", section) {
		for _, words := range typed(w.t, strings.ReplaceAll(block, "/opt/venv/bin", venv)) {
			if words[0] == "cp" {
				words[1] = filepath.Join(w.dir, words[1])
			}
			if words[0] == "exec" && words[1] == allocation || words[0] == "cp" && words[2] == allocation+":" {
				printed += w.mustRun(words...) + "\n"
			}
		}
	}
	return printed
}

// What the page tells people to type for PyTorch and vLLM starts them as they want to be started,
// on one node and on each of two.
func TestLaunchersOnAnAllocation(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.createPool()
	w.dir = t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(w.dir, "train.py"), []byte("the script\n"), 0o600))
	w.mustRun("allocate", "--gpus", "2", "--pool", "lab", "--name", "otter", "--for", "1h", "--wait")
	w.attachDaemons("otter")
	require.Equal(t, "\ntorchrun --standalone --nproc-per-node 2 train.py\nthe script\n",
		w.launchAsWritten("PyTorch", "otter"))
	require.Equal(t, "PCI_BUS_ID 4,5 /srv/models vllm serve Qwen/Qwen3-8B --tensor-parallel-size 2 --host 127.0.0.1 "+
		"--port 8000\n", w.launchAsWritten("vLLM", "otter"))
	w.mustRun("release", "otter")

	w.mustRun("allocate", "--gpus", "8", "--nodes", "2", "--pool", "lab", "--name", "gang", "--for", "1h", "--wait")
	w.attachDaemons("gang")
	port := w.mustRun("env", "gang", "--jq", ".MASTER_PORT")
	host := w.mustRun("env", "gang", "--jq", ".MASTER_ADDR")
	require.NotEmpty(t, host)
	meeting := " --master-addr " + host + " --master-port " + port
	said := w.launchAsWritten("PyTorch", "gang")
	require.Contains(t, said, "torchrun --nnodes 2 --node-rank 0 --nproc-per-node 4"+meeting+" train.py\nthe script\n")
	require.Contains(t, said, "torchrun --nnodes 2 --node-rank 1 --nproc-per-node 4"+meeting+" train.py\nthe script\n")
	said = w.launchAsWritten("vLLM", "gang")
	span := "PCI_BUS_ID 4,5,6,7 /srv/models vllm serve Qwen/Qwen3-32B --distributed-executor-backend mp " +
		"--tensor-parallel-size 4 --pipeline-parallel-size 2 --nnodes 2 --node-rank "
	require.Contains(t, said, span+"0"+meeting+" --host 127.0.0.1 --port 8000\n")
	require.Contains(t, said, span+"1"+meeting+" --headless\n")
}
