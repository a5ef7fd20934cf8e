package load

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// visitAs runs the script of a visit as the command of an allocation, and returns what it wrote down.
func visitAs(t *testing.T, dir, allocation, isolation string) string {
	t.Helper()
	home, log := filepath.Join(dir, allocation), filepath.Join(dir, "log")
	require.NoError(t, os.MkdirAll(home, 0o700))
	before, err := os.ReadFile(log)
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script, "bash", "v1", "red", log, "1", markOf(dir), "willing")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "LANG=C.UTF-8", "FOREWARM_ALLOCATION=" + allocation,
		"FOREWARM_ISOLATION=" + isolation, "CUDA_VISIBLE_DEVICES=GPU-1,GPU-2"}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Empty(t, string(out))
	after, err := os.ReadFile(log)
	require.NoError(t, err)
	return string(after[len(before):])
}

// markOf keeps what tests leave apart.
func markOf(dir string) string { return "forewarm-chaos-" + filepath.Base(filepath.Dir(dir)) + "." }

// newVisits is a folder of visitors, with an empty log. What they leave goes with it.
func newVisits(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "log"), nil, 0o600))
	t.Cleanup(func() {
		require.Eventually(t, func() bool { return killMarked(markOf(dir)) == 0 }, time.Minute, time.Millisecond)
		for _, shared := range []string{"/tmp/", "/dev/shm/"} {
			left, err := filepath.Glob(shared + markOf(dir) + "*")
			require.NoError(t, err)
			for _, path := range left {
				require.NoError(t, os.Remove(path))
			}
		}
	})
	return dir
}

// killMarked kills the processes that have a mark among their arguments, and returns how many there were.
func killMarked(mark string) (found int) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is right
	for _, path := range all {
		arguments, err := os.ReadFile(path)
		pid, perr := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err == nil && perr == nil && bytes.Contains(arguments, []byte("\x00"+mark+"GPU-")) {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
			found++
		}
	}
	return found
}

// What nobody cleans up, the next visitor finds: every kind of mark, and never its own.
func TestAVisitorFindsWhatOthersLeft(t *testing.T) {
	t.Parallel()
	dir := newVisits(t)
	first := visitAs(t, dir, "alc_1", "user")
	require.Contains(t, first, " begins v1 alc_1 red GPU-1,GPU-2 -\n")
	require.NotContains(t, first, " finds ")
	second := visitAs(t, dir, "alc_2", "user")
	name := markOf(dir) + "GPU-2.alc_1"
	for _, mark := range []string{"file:/tmp/" + name, "file:/dev/shm/" + name, "process:" + name, "folder:alc_1"} {
		require.Contains(t, first, " leaves v1 alc_1 red GPU-1,GPU-2 "+mark+"\n")
		require.Contains(t, first, " sees v1 alc_1 red GPU-1,GPU-2 "+mark+"\n")
		require.Contains(t, second, " finds v1 alc_2 red GPU-1,GPU-2 "+mark+"\n")
		begins, _, _ := strings.Cut(second, " leaves ")
		require.Contains(t, begins, mark, "it looks before it leaves anything")
	}
	require.Contains(t, second, fmt.Sprintf(" sees v1 alc_2 red GPU-1,GPU-2 process:%sGPU-1.alc_2\n", markOf(dir)))
	require.NotContains(t, second, "finds v1 alc_2 red GPU-1,GPU-2 folder:alc_2\n")
}

// Where holders have no user of their own, nobody can tell whose files in shared folders are: none is left there.
func TestAVisitorWithoutAUserLeavesNothingInSharedFolders(t *testing.T) {
	t.Parallel()
	said := visitAs(t, newVisits(t), "alc_1", "environment")
	require.NotContains(t, said, "file:")
	require.Contains(t, said, " leaves v1 alc_1 red GPU-1,GPU-2 folder:alc_1\n")
	require.Contains(t, said, " sees v1 alc_1 red GPU-1,GPU-2 process:")
}
