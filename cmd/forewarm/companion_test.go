package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// withNodeProgram is a PATH that begins with a folder in which forewarm-node is.
func withNodeProgram(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	build := exec.Command("go", "build", "-p", "2", "-tags", "nomsgpack", "-trimpath", "-o",
		filepath.Join(dir, "forewarm-node"), "../forewarm-node")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	return "PATH=" + dir + ":" + os.Getenv("PATH")
}

// say runs a command of the program to its end, and returns what it printed.
func (h home) say(t *testing.T, want int, args ...string) string {
	t.Helper()
	p := h.start(t, nil, args...)
	require.Equal(t, want, p.wait(t, patience), "%v: %s", args, p.errors.String())
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.lines, "\n")
}

// runs reports whether a process has not ended: nobody may have reaped it.
func runs(pid string) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

// commandsOfTheOneMachine are what README.md and docs/node.md tell people to type beside an up with a node of its
// own machine, without the program's name.
func commandsOfTheOneMachine(t *testing.T) (lines []string) {
	t.Helper()
	for file, block := range map[string]*regexp.Regexp{
		"../../README.md":    regexp.MustCompile("(?s)```text\n(\\$ make bin/forewarm-node\n.*?)```"),
		"../../docs/node.md": regexp.MustCompile("(?s)## On one machine\n.*?```sh\n(.*?)```"),
	} {
		page, err := os.ReadFile(file)
		require.NoError(t, err)
		found := block.FindSubmatch(page)
		require.NotNil(t, found, file)
		for line := range strings.Lines(string(found[1])) {
			_, command, ours := strings.Cut(strings.TrimPrefix(line, "$ bin/"), "forewarm ")
			if ours && !strings.HasPrefix(command, "up ") {
				lines = append(lines, strings.TrimSpace(command))
			}
		}
	}
	require.Len(t, lines, 5)
	return lines
}

// On a machine without GPUs, up brings the node's daemon: whoever holds its GPUs runs commands there, and the
// next one finds nothing of the one before, however up ended in between.
func TestUpBringsTheNodesDaemon(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	holds, err := os.MkdirTemp("/var/tmp", "forewarm-companion-test-") // others can pass through it
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(holds)) })
	require.NoError(t, os.Chmod(holds, 0o711)) //nolint:gosec // as said
	h.writeConfig(t, "provisioners: [{kind: local, config: {name: here, simulate: 2, shared_user: true, hold_dir: "+
		holds+"}}]\n"+
		"pools: [{name: local, provisioner: here, region: local, instance_type: local, max_nodes: 1}]\n")
	path := withNodeProgram(t)
	up := func(listen string) *process {
		return h.start(t, []string{path}, "up", "--config", h.configFile(), "--data-dir", h.dataDir(), "--listen", listen)
	}
	first := up("127.0.0.1:0")
	address := strings.TrimPrefix(first.awaitAddress(t), "http://")
	h.awaitKey(t, first)
	allocate := func(name string) {
		h.say(t, 0, "allocate", "--pool", "local", "--gpus", "2", "--for", "30m", "--name", name, "--wait")
	}
	allocate("first")
	got := h.say(t, 0, "exec", "first", "--", "sh", "-c",
		`echo "$CUDA_VISIBLE_DEVICES $FOREWARM_ISOLATION $HOME"; echo secret >"$HOME/left"
nohup sleep 1000 >/dev/null 2>&1 & echo $!`)
	require.Regexp(t, `^GPU-SIM-\S+,GPU-SIM-\S+ (devices|user|environment) \S+\n\d+$`, got)
	lines := strings.Split(got, "\n")
	folder, sleeper := strings.Fields(lines[0])[2], lines[1]
	require.FileExists(t, filepath.Join(folder, "left"))
	require.True(t, runs(sleeper))
	require.Contains(t, h.say(t, 0, "allocations", "show", "first"), "forewarm exec first")

	require.NoError(t, first.cmd.Process.Signal(syscall.SIGKILL)) // what runs goes on
	first.wait(t, patience)
	second := up(address)
	second.awaitAddress(t)
	require.True(t, runs(sleeper))
	require.Equal(t, "secret", h.say(t, 0, "exec", "first", "--", "sh", "-c", "cat left"))
	require.Equal(t, "", h.say(t, 7, "exec", "first", "--", "sh", "-c", "exit 7"))
	cut := h.start(t, nil, "exec", "first", "--", "sh", "-c", "echo $$ $PPID; exec sleep 1000")
	_, found := cut.awaitLine(t, 0, patience, regexp.MustCompile(`^(\d+) (\d+)$`))
	command := found[1]
	pid, err := strconv.Atoi(found[2])
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	require.NotZero(t, cut.wait(t, patience))
	eventually(t, patience, func() string {
		if runs(command) {
			return "the command outlives a daemon that was killed"
		}
		return ""
	})
	h.say(t, 0, "release", "first")
	allocate("second")
	require.NoDirExists(t, folder)
	require.False(t, runs(sleeper))
	require.Equal(t, "", h.say(t, 0, "exec", "second", "--", "sh", "-c", "ls -A"))
	require.Contains(t, h.say(t, 0, "events", "--last", "0"), "1 process ended, 1 file removed")
	h.say(t, 0, "release", "second")
	for _, line := range commandsOfTheOneMachine(t) { // what the documents tell people to type comes true
		got := h.say(t, 0, strings.Fields(line)...)
		if strings.HasPrefix(line, "exec ") {
			require.Contains(t, got, "CUDA_VISIBLE_DEVICES=GPU-SIM-")
		}
	}
	require.Zero(t, second.stop(t, ending), second.errors.String())
}
