package cli

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// becomeProgram puts a program in the place of this one: its standard streams, its
// terminal, its signals and its exit code are then the program's own.
func becomeProgram(argv []string) error {
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return errors.New("it is not installed here, or not in PATH") // that is all that err says
	}
	return syscall.Exec(path, argv, os.Environ())
}
