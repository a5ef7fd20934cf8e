// Package supervisetest builds a supervisor of sessions for tests: a program of tests must not start itself.
package supervisetest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
)

// Command returns the command line of a supervisor, as supervise.Open takes it. The first call of a process
// builds it, in a few seconds, and panics if it cannot.
func Command() []string {
	return []string{fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), program().Fd())}
}

// program is the supervisor, which is in no folder any more, so that nobody has to remove it.
var program = sync.OnceValue(func() *os.File {
	dir, err := os.MkdirTemp("", "forewarm-supervisor-")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "supervisor")
	build := exec.Command("go", "build", "-tags", "nomsgpack", "-o", file, //nolint:gosec // it ends by itself
		"github.com/forewarm/forewarm/node/supervise/testdata/supervisor")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		panic(fmt.Sprintf("building a supervisor: %v: %s", err, out))
	}
	f, err := os.Open(file) //nolint:gosec // just built
	if err != nil {
		panic(err)
	}
	return f
})
