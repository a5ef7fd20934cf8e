// Package launchtest builds a launcher for tests: a program of tests must not start itself.
package launchtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/forewarm/forewarm/node/launch"
)

// Launcher returns a launcher. The first call of a process builds it, in less than a second, and
// panics if it cannot.
func Launcher() launch.Launcher {
	return launch.Launcher{fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), program().Fd())}
}

// program is the launcher, which is in no folder any more, so that nobody has to remove it.
var program = sync.OnceValue(func() *os.File {
	dir, err := os.MkdirTemp("", "forewarm-launcher-")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "launcher")
	build := exec.Command("go", "build", "-o", file, //nolint:gosec // it ends by itself
		"github.com/forewarm/forewarm/node/launch/testdata/launcher")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		panic(fmt.Sprintf("building a launcher: %v: %s", err, out))
	}
	f, err := os.Open(file) //nolint:gosec // just built
	if err != nil {
		panic(err)
	}
	return f
})
