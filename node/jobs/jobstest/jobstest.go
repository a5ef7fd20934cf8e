// Package jobstest builds a runner of jobs for tests: a program of tests must not start itself.
package jobstest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
)

// Runner returns the command line of a runner, as jobs.Config takes it. The first call of a process
// builds it, in a few seconds, and panics if it cannot.
func Runner() []string {
	return []string{fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), program().Fd()), "job"}
}

// program is the runner, which is in no folder any more, so that nobody has to remove it.
var program = sync.OnceValue(func() *os.File {
	dir, err := os.MkdirTemp("", "forewarm-runner-")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "runner")
	build := exec.Command("go", "build", "-tags", "nomsgpack", "-o", file, //nolint:gosec // it ends by itself
		"github.com/forewarm/forewarm/node/jobs/testdata/runner")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		panic(fmt.Sprintf("building a runner: %v: %s", err, out))
	}
	f, err := os.Open(file) //nolint:gosec // just built
	if err != nil {
		panic(err)
	}
	return f
})
