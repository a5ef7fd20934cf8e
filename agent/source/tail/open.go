//go:build unix

package tail

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// RefusedError says that a path is not something that may be read. A link could
// lead to a secret, and a pipe or device could block for ever.
type RefusedError struct {
	Path, Why string
}

// Error names the path, the reason and the fix.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("refusing to read %s: it is %s; name a regular file", e.Path, e.Why)
}

// Open opens a regular file for reading, and nothing else: the check is made
// before the file is opened, so that a device is not touched, and again on what
// was opened, so that a swap between the two is seen. Errors are fs.ErrNotExist,
// a *RefusedError, or another *fs.PathError.
func Open(path string) (*os.File, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if err := requireRegular(path, info); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if errors.Is(err, syscall.ELOOP) {
		return nil, &RefusedError{Path: path, Why: "a symbolic link"}
	}
	if err != nil {
		return nil, err
	}
	info, err = f.Stat()
	if err == nil {
		err = requireRegular(path, info)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func requireRegular(path string, info fs.FileInfo) error {
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return nil
	case mode&fs.ModeSymlink != 0:
		return &RefusedError{Path: path, Why: "a symbolic link"}
	case mode.IsDir():
		return &RefusedError{Path: path, Why: "a folder"}
	default:
		return &RefusedError{Path: path, Why: "a pipe, socket or device"}
	}
}

// identity is what stays the same when a file is renamed.
type identity struct{ dev, ino uint64 }

func identityOf(info fs.FileInfo) identity {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return identity{dev: uint64(st.Dev), ino: st.Ino}
	}
	return identity{}
}
