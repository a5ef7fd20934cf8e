package glob

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// match is a regular file that the pattern names.
type match struct {
	path string
	info fs.FileInfo
}

// findFiles finds the regular files of a pattern, in the order of their names. Links, folders and pipes are none.
func findFiles(pattern string) ([]match, error) {
	paths, err := filepath.Glob(pattern)
	if err != nil {
		return nil, err
	}
	var found []match
	for _, path := range paths {
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
			found = append(found, match{path, info})
		}
	}
	return found, nil
}

// discoverMembers brings the members up to date with the folder.
func (g *Group) discoverMembers() error {
	found, err := findFiles(g.cfg.Pattern)
	if err != nil {
		return err
	}
	found = g.withoutRotated(found)
	chosen, tooMany := g.chooseFiles(found)
	now := g.cfg.Clock.Now()
	var failed error
	for _, f := range chosen {
		m := g.members[f.path]
		if m == nil {
			opened, err := g.cfg.Open(f.path, g.key(f.path), g.looked)
			if err != nil {
				failed = errors.Join(failed, err)
				continue
			}
			m = &member{Source: opened}
			g.members[f.path] = m
		}
		m.info, m.seen = f.info, now
	}
	if !g.looked {
		g.looked, g.prune = true, now.Add(lost)
	}
	return errors.Join(failed, tooMany, g.forgetMembers(found, chosen))
}

// key is the name of a file's source.
func (g *Group) key(path string) string { return g.cfg.Name + ":" + path }

// withoutRotated leaves out the files that were read under the name they had before they were renamed.
func (g *Group) withoutRotated(found []match) []match {
	rotated := map[string]fs.FileInfo{}
	kept := slices.DeleteFunc(found, func(f match) bool {
		if g.members[f.path] != nil || !g.wasRead(f.info) {
			return false
		}
		rotated[f.path] = f.info
		return true
	})
	g.rotated = rotated
	return kept
}

func (g *Group) wasRead(info fs.FileInfo) bool {
	for _, m := range g.members {
		if os.SameFile(m.info, info) {
			return true
		}
	}
	for _, r := range g.rotated {
		if os.SameFile(r, info) {
			return true
		}
	}
	return false
}

// chooseFiles returns the files to read: all, or those that changed last. That there are too many is told
// when their number has changed.
func (g *Group) chooseFiles(found []match) ([]match, error) {
	if len(found) <= g.cfg.MaxFiles {
		g.most = 0
		return found, nil
	}
	latest := slices.Clone(found)
	slices.SortStableFunc(latest, func(a, b match) int { return b.info.ModTime().Compare(a.info.ModTime()) })
	latest = latest[:g.cfg.MaxFiles]
	if g.most == len(found) {
		return latest, nil
	}
	g.most = len(found)
	return latest, fmt.Errorf("%s matches %d files, of which the %d that changed last are read: narrow the pattern",
		g.cfg.Pattern, len(found), g.cfg.MaxFiles)
}

// forgetMembers closes the members that are read no more, and drops the resume positions of files that are gone.
func (g *Group) forgetMembers(found, chosen []match) error {
	there, kept := pathsOf(found), pathsOf(chosen)
	var failed error
	for path, m := range g.members {
		away := g.cfg.Clock.Now().Sub(m.seen) >= lost
		switch {
		case kept[path], !there[path] && !away:
			continue
		case !there[path]:
			failed = errors.Join(failed, g.cfg.Checkpoint.Forget(g.key(path)))
		}
		failed = errors.Join(failed, m.Close())
		delete(g.members, path)
	}
	if g.prune.IsZero() || g.cfg.Clock.Now().Before(g.prune) {
		return failed
	}
	g.prune = time.Time{}
	for _, name := range g.cfg.Checkpoint.Names() { // of files that went while nobody looked
		if path, ours := strings.CutPrefix(name, g.key("")); ours && !there[path] {
			failed = errors.Join(failed, g.cfg.Checkpoint.Forget(name))
		}
	}
	return failed
}

func pathsOf(found []match) map[string]bool {
	paths := map[string]bool{}
	for _, f := range found {
		paths[f.path] = true
	}
	return paths
}
