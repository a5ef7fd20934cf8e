package hold

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"time"
)

// emptyWithin is how long a folder may take to be emptied: somebody may go on filling it.
const emptyWithin = 90 * time.Second

// emptyFolder removes all that is in a folder of ours, and returns how many entries there were.
// Folders in it are moved up before the one that they are in is removed, so that neither paths
// nor open files grow with the depth, and nothing outside is reached by links.
func emptyFolder(dir string) (removed int, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return 0, err
	}
	defer func() { _ = root.Close() }()
	e := emptying{root: root}
	for until := time.Now().Add(emptyWithin); ; { //nolint:forbidigo // how long the machine's files take
		names, err := e.names(".")
		if err != nil || len(names) == 0 {
			return e.removed, err
		}
		before := e.removed
		for _, name := range names {
			e.removeOne(name)
		}
		if e.removed == before || time.Now().After(until) { //nolint:forbidigo // as above
			return e.removed, errors.Join(e.failed, fmt.Errorf("%d entries stay", len(names)))
		}
	}
}

// emptying is the work of emptyFolder.
type emptying struct {
	root    *os.Root
	removed int
	moved   int
	failed  error // of the last entry that could not be removed
}

func (e *emptying) names(dir string) ([]string, error) {
	f, err := e.root.Open(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return f.Readdirnames(-1)
}

// removeOne removes an entry of the folder, and moves up the folders that are in it.
func (e *emptying) removeOne(name string) {
	if info, err := e.root.Lstat(name); err == nil && info.IsDir() {
		e.open(name)
		inside, err := e.names(name)
		e.note(err)
		for _, entry := range inside {
			e.takeOut(name + "/" + entry)
		}
	}
	e.remove(name)
}

// takeOut removes what lies in an entry of the folder, or moves it up if it is a folder.
func (e *emptying) takeOut(path string) {
	info, err := e.root.Lstat(path)
	if err != nil || !info.IsDir() {
		e.remove(path)
		return
	}
	e.open(path)
	e.moved++
	e.note(e.root.Rename(path, "moved-"+strconv.Itoa(e.moved)))
}

// open lets a daemon that is not root into a folder that its own user has closed.
func (e *emptying) open(dir string) {
	if os.Getuid() != 0 {
		_ = e.root.Chmod(dir, 0o700)
	}
}

func (e *emptying) remove(path string) {
	err := e.root.Remove(path)
	if e.note(err); err == nil {
		e.removed++
	}
}

func (e *emptying) note(err error) {
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		e.failed = err
	}
}
