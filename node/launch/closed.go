package launch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// closedFolder is the first folder on the way to a path that this process's user may not pass,
// and its mode; empty: there is none.
func closedFolder(path string) (folder string, mode fs.FileMode) {
	at := string(filepath.Separator)
	for _, name := range append(strings.Split(filepath.Clean(path), at), ".") {
		next := filepath.Join(at, name)
		if name == "." {
			next = at + "/." // what is in the last one
		}
		if _, err := os.Stat(next); errors.Is(err, fs.ErrPermission) {
			if info, err := os.Stat(at); err == nil {
				mode = info.Mode().Perm()
			}
			return at, mode
		}
		at = next
	}
	return "", 0
}

// explainClosed says of a refusal which folder cannot be passed, and who can open it: a folder
// above the allocation's own is the operator's.
func (o order) explainClosed(err error, path string) error {
	if !errors.Is(err, syscall.EACCES) {
		return err
	}
	folder, mode := closedFolder(path)
	if folder == "" {
		return err
	}
	err = fmt.Errorf("the user of the allocation cannot pass the folder %s (mode %04o)", folder, mode)
	if o.Home != "" && strings.HasPrefix(o.Home, strings.TrimSuffix(folder, "/")+"/") {
		err = fmt.Errorf("%w: an operator opens it on the node with chmod o+x, or chooses another hold_dir", err)
	}
	return err
}
