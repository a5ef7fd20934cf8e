// Package glob reads every file that matches a pattern, such as logs/*.log, as one source.
//
// Each file has its own source, with its own resume positions. Files that
// appear later are picked up, and a file that rotation renames within the
// pattern is not read again. Of more files than the limit, those that changed
// last are read. A file that is gone for a minute is forgotten.
package glob

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/forewarm/forewarm/agent/history"
	"github.com/forewarm/forewarm/agent/source"
	"github.com/forewarm/forewarm/internal/clock"
)

// MaxFiles is how many files of a pattern are read at once, unless a Config says otherwise.
const MaxFiles = 100

// lost is how long a file may be away, as between two steps of a rotation, before it is forgotten.
const lost = time.Minute

// Config says which files to read, and how.
type Config struct {
	// Pattern is in the syntax of filepath.Match.
	Pattern string
	// Name is the source's name; empty means the pattern.
	Name string
	// Open makes the source of one file, under a name that is its key in the checkpoint. late says that the file was
	// not there when the group looked first. Required.
	Open func(path, name string, late bool) (source.Source, error)
	// Checkpoint keeps the resume positions of the files; required.
	Checkpoint *history.Checkpoint
	// Clock tells the time; nil means the system's.
	Clock clock.Clock
	// MaxFiles is how many files are read at once; 0 means MaxFiles.
	MaxFiles int
}

// Group reads the files of a pattern. It implements source.Source.
type Group struct {
	cfg     Config
	members map[string]*member     // by path
	rotated map[string]fs.FileInfo // what members were before they were renamed, by path
	looked  bool
	prune   time.Time // when to drop the positions of files that went while nobody looked; zero once done
	most    int       // files that matched when it was last told that they are too many
}

// member is one file that is read.
type member struct {
	source.Source
	info fs.FileInfo // of what was last seen at its path
	seen time.Time
}

var _ source.Source = (*Group)(nil)

// IsPattern reports whether a path is a pattern, and not the name of a file that is there.
func IsPattern(path string) bool {
	if !strings.ContainsAny(path, "*?[") {
		return false
	}
	_, err := os.Lstat(path)
	return err != nil
}

// Matches returns the regular files that match a pattern. The error is filepath.ErrBadPattern.
func Matches(pattern string) ([]string, error) {
	found, err := findFiles(pattern)
	paths := make([]string, len(found))
	for i, f := range found {
		paths[i] = f.path
	}
	return paths, err
}

// New returns a source for the files of a pattern. It opens nothing yet.
func New(c Config) (*Group, error) {
	if c.Open == nil || c.Checkpoint == nil {
		return nil, errors.New("following the files of a pattern: a way to open them and a checkpoint are needed")
	}
	if _, err := filepath.Match(c.Pattern, ""); err != nil || c.Pattern == "" {
		return nil, fmt.Errorf("following the files of a pattern: %q is no pattern such as logs/*.log", c.Pattern)
	}
	c.Name, c.MaxFiles = cmp.Or(c.Name, c.Pattern), cmp.Or(c.MaxFiles, MaxFiles)
	if c.Clock == nil {
		c.Clock = clock.System{}
	}
	return &Group{cfg: c, members: map[string]*member{}, rotated: map[string]fs.FileInfo{}}, nil
}

// Name returns the configured name.
func (g *Group) Name() string { return g.cfg.Name }

// Watch returns the last folder of the pattern that is not itself a pattern.
func (g *Group) Watch() []string {
	dir := filepath.Dir(g.cfg.Pattern)
	for strings.ContainsAny(dir, "*?[") {
		dir = filepath.Dir(dir)
	}
	return []string{dir}
}

// Step returns what is new in all files. A file that cannot be read does not keep the others from being read.
func (g *Group) Step(ctx context.Context) ([]source.Item, error) {
	err := g.discoverMembers()
	var items []source.Item
	for _, path := range g.paths() {
		found, failed := g.members[path].Step(ctx)
		items = append(items, found...)
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("file %s: %w", path, failed))
		}
	}
	return items, err
}

// paths of the members, in order.
func (g *Group) paths() []string {
	paths := make([]string, 0, len(g.members))
	for path := range g.members {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return paths
}

// Commit makes the resume positions of all files durable.
func (g *Group) Commit() error {
	var err error
	for _, path := range g.paths() {
		err = errors.Join(err, g.members[path].Commit())
	}
	return err
}

// Close closes what is open.
func (g *Group) Close() error {
	var err error
	for _, m := range g.members {
		err = errors.Join(err, m.Close())
	}
	clear(g.members)
	return err
}
