// Package buildtest builds programs that tests start: a program of tests must not start itself.
package buildtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// Program builds a main package, in seconds, and returns a path by which this process and its children can start it.
// It is in no folder any more, so that nobody has to remove it, and lasts as long as this process. Program panics if
// it cannot be built: who builds one once for all tests has none of them at hand.
func Program(mainPackage string) (path string) {
	dir, err := os.MkdirTemp("", "forewarm-test-")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, filepath.Base(mainPackage))
	build := exec.CommandContext(context.Background(), "go", "build", //nolint:gosec // the tests' own
		"-tags", "nomsgpack", "-o", file, mainPackage)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		panic(fmt.Sprintf("building %s: %v: %s", mainPackage, err, out))
	}
	fd, err := syscall.Open(file, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		panic(fmt.Sprintf("opening %s: %v", file, err))
	}
	return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), fd)
}
