package tail

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/forewarm/forewarm/agent/history"
)

// compressed are the endings of rotated files that cannot be read on.
var compressed = []string{".gz", ".xz", ".zst", ".bz2", ".lz4", ".zip"}

// sibling is a rotated file: its name is that of the log and a dot or dash more.
type sibling struct {
	path     string
	id       identity
	modified time.Time
	suffix   string
}

// rotationNumber returns the number of a name such as app.log.3, or -1. A number with
// leading zeros or more than four digits is rather a date.
func (s sibling) rotationNumber() int {
	n, err := strconv.Atoi(s.suffix[1:])
	if err != nil || n < 0 || n > 9999 || s.suffix != "."+strconv.Itoa(n) {
		return -1
	}
	return n
}

// listSiblings lists the rotated files, the oldest first. A folder cannot be listed
// in one instant, so it is listed until two listings agree.
func (t *Tail) listSiblings() ([]sibling, error) {
	var last []sibling
	for range 10 {
		now, err := t.listOnce()
		if err != nil {
			return nil, err
		}
		if last != nil && slices.EqualFunc(now, last,
			func(a, b sibling) bool { return a.path == b.path && a.id == b.id }) {
			return now, nil
		}
		last = now
	}
	return last, nil
}

func (t *Tail) listOnce() ([]sibling, error) {
	entries, err := os.ReadDir(filepath.Dir(t.cfg.Path))
	if err != nil {
		return nil, err
	}
	found := []sibling{}
	base := filepath.Base(t.cfg.Path)
	for _, e := range entries {
		suffix, ok := strings.CutPrefix(e.Name(), base)
		if !ok || suffix == "" || (suffix[0] != '.' && suffix[0] != '-') ||
			slices.Contains(compressed, filepath.Ext(suffix)) {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) || (err == nil && !info.Mode().IsRegular()) {
			continue
		}
		if err != nil {
			return nil, err
		}
		found = append(found, sibling{
			path: filepath.Join(filepath.Dir(t.cfg.Path), e.Name()), id: identityOf(info),
			modified: info.ModTime(), suffix: suffix,
		})
	}
	sortOldestFirst(found)
	return found, nil
}

// sortOldestFirst orders by number where all names have one (a larger number is
// older), else by the time of the last change: that of quick rotations can tie.
func sortOldestFirst(files []sibling) {
	numbered := !slices.ContainsFunc(files, func(s sibling) bool { return s.rotationNumber() < 0 })
	slices.SortFunc(files, func(a, b sibling) int {
		if numbered {
			return cmp.Compare(b.rotationNumber(), a.rotationNumber())
		}
		return cmp.Or(a.modified.Compare(b.modified), strings.Compare(a.suffix, b.suffix))
	})
}

// openBetween opens the files that were at the path after last and before current.
func (t *Tail) openBetween(last *file, current identity) ([]*file, error) {
	all, err := t.listSiblings()
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(all, func(s sibling) bool { return s.id == current }); i >= 0 {
		all = all[:i]
	}
	if i := slices.IndexFunc(all, func(s sibling) bool { return s.id == last.id }); i >= 0 {
		all = all[i+1:]
	} else {
		info, err := last.Stat()
		if err != nil {
			return nil, err
		}
		all = slices.DeleteFunc(all, func(s sibling) bool { return !s.modified.After(info.ModTime()) })
	}
	return t.openSiblings(all)
}

// openSiblings opens those files that are still what was listed and not open yet.
func (t *Tail) openSiblings(all []sibling) ([]*file, error) {
	var files []*file
	for _, s := range all {
		f, err := openFile(s.path)
		var refused *RefusedError
		if errors.Is(err, fs.ErrNotExist) || errors.As(err, &refused) {
			continue
		}
		if err != nil {
			closeAll(files)
			return nil, err
		}
		if f.id != s.id || t.hasOpen(f.id) {
			_ = f.Close()
			continue
		}
		files = append(files, f)
	}
	return files, nil
}

// findRenamed opens the files of the positions, in their order, wherever they have been
// renamed to.
func (t *Tail) findRenamed(positions []history.Position) ([]*file, error) {
	if len(positions) == 0 {
		return nil, nil
	}
	all, err := t.listSiblings()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	paths := []string{t.cfg.Path}
	for _, s := range slices.Backward(all) {
		paths = append(paths, s.path)
	}
	var found []*file
	for _, p := range positions {
		f, err := findOne(paths, p)
		if err != nil {
			closeAll(found)
			return nil, err
		}
		if f != nil {
			found = append(found, f)
		}
	}
	return found, nil
}

func findOne(paths []string, p history.Position) (*file, error) {
	for _, path := range paths {
		f, err := openFile(path)
		var refused *RefusedError
		if errors.Is(err, fs.ErrNotExist) || errors.As(err, &refused) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if f.id == (identity{p.Dev, p.Ino}) && f.continuesAt(p) {
			f.pos, f.saved = p, p
			return f, nil
		}
		_ = f.Close()
	}
	return nil, nil
}

func closeAll(files []*file) {
	for _, f := range files {
		_ = f.Close()
	}
}
