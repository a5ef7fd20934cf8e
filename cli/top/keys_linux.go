package top

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// readKeys has a terminal hand on each key as it is typed, without showing it, until restore is
// called. Ctrl-C stays what it is. What is no terminal stays as it is, too.
func readKeys(in io.Reader) (restore func()) {
	f, ok := in.(*os.File)
	if !ok {
		return func() {}
	}
	fd := int(f.Fd()) //nolint:gosec // a descriptor is small
	before, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return func() {}
	}
	keys := *before
	keys.Lflag &^= unix.ICANON | unix.ECHO
	keys.Cc[unix.VMIN], keys.Cc[unix.VTIME] = 1, 0
	_ = unix.IoctlSetTermios(fd, unix.TCSETS, &keys) // where it cannot be, Enter hands them on
	return func() { _ = unix.IoctlSetTermios(fd, unix.TCSETS, before) }
}
