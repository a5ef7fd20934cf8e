package jobs_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
)

// The folder of an attempt that is over is used again, and has nothing of it.
func TestAFolderIsUsedAgain(t *testing.T) {
	n := newNode(t)
	o := order("echo secret; exit 3")
	require.Equal(t, 3, n.run(o).ExitCode)
	n.keeper.Heed(nil, []contract.JobKey{first}, n.now.Add(time.Second))
	n.await(func() bool { return len(n.keeper.Reports()) == 0 })
	spare := n.onlyFolder()
	require.NotEqual(t, n.folder(first), spare)
	n.await(func() bool { return n.isWiped(spare) })
	o = order("true")
	o.JobID = "job_2"
	require.Equal(t, contract.JobReport{}, n.run(o))
	require.Equal(t, n.folder(o.JobKey), n.onlyFolder())
}

// isWiped reports whether no file in a folder has any content.
func (n *node) isWiped(folder string) bool {
	n.Helper()
	files, err := os.ReadDir(folder)
	require.NoError(n, err)
	for _, f := range files {
		if info, err := f.Info(); err != nil || info.Size() > 0 {
			return false
		}
	}
	return true
}

func (n *node) onlyFolder() string {
	n.Helper()
	entries, err := os.ReadDir(filepath.Join(n.dir, "jobs"))
	require.NoError(n, err)
	require.Len(n, entries, 1)
	return filepath.Join(n.dir, "jobs", entries[0].Name())
}

// What a file says of another attempt, as one that a machine which ended has not emptied, counts for nothing.
func TestWhatAFileSaysOfAnotherAttemptIsNothing(t *testing.T) {
	n := newNode(t)
	pipe := n.newPipe("go")
	n.answer(0, order("cat "+pipe))
	n.await(func() bool { return n.report(first).RanSeconds > 0 })
	stale := []byte(`{"of":"job_0-1","exit_code":5,"ran_seconds":1}`)
	require.NoError(t, os.WriteFile(filepath.Join(n.folder(first), "result.json"), stale, 0o600))
	require.NoError(t, syscall.Kill(n.runnerOf(first), syscall.SIGKILL))
	require.Equal(t, contract.JobLost, n.awaitEnd(first).Code)
}
