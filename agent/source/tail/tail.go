// Package tail reads a log file that grows and is rotated, and loses no line.
//
// A file is known by its device, inode and the bytes it begins with, never by
// its path alone. What happens to it:
//
//   - Renamed (rotation): the rest of the old file is read, then every file that
//     was rotated in between, then the new one. The old file stays open for
//     Config.Drain after it last grew, for a writer that has not yet noticed.
//   - Deleted and made anew, even with the same inode: the new file is read from
//     its start.
//   - Truncated in place (copytruncate): seen when the file is shorter than, or
//     differs from, what was read, then read from its start and counted. Lines
//     written between our last look and the truncation are lost: nobody can read
//     them, which is why rotation by rename is to be preferred.
//   - Compressed before it was read: its rest is lost and counted as vanished
//     (logrotate's delaycompress avoids this).
//
// A line is handed over once it is complete. Memory is bounded by one line:
// longer ones are passed over and counted. Only regular files are opened, never
// a link.
package tail

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/forewarm/forewarm/agent/history"
	"github.com/forewarm/forewarm/agent/source"
	"github.com/forewarm/forewarm/internal/clock"
)

// Config says which file to follow.
type Config struct {
	// Path is the log file. It need not exist yet.
	Path string
	// Name is the source's name and its key in the checkpoint; empty means Path.
	Name string
	// Checkpoint keeps the resume positions; required.
	Checkpoint *history.Checkpoint
	// Clock tells the time; nil means the system's.
	Clock clock.Clock
	// MaxLine is the longest line in bytes; 0 means 64 KiB.
	MaxLine int
	// MaxStep is about how many bytes one Step reads; 0 means 4 MiB.
	MaxStep int64
	// Drain is how long a rotated file is read after it last grew; 0 means 10 s.
	Drain time.Duration
	// FromEnd passes over what a file holds when it is seen for the very first
	// time. Line numbers then count from there.
	FromEnd bool
	// Header keeps the first line of each file for Entry.Header.
	Header bool
}

func (c Config) withDefaults() Config {
	if c.Name == "" {
		c.Name = c.Path
	}
	if c.Clock == nil {
		c.Clock = clock.System{}
	}
	if c.MaxLine <= 0 {
		c.MaxLine = 64 << 10
	}
	if c.MaxStep <= 0 {
		c.MaxStep = 4 << 20
	}
	if c.Drain <= 0 {
		c.Drain = 10 * time.Second
	}
	return c
}

// Stats counts what a Tail has met since it was made.
type Stats struct {
	// Lines were handed over.
	Lines int64
	// Long lines were passed over.
	Long int64
	// Rotated is how often the path became another file.
	Rotated int64
	// Truncated is how often a file was cut in place: lines may be lost.
	Truncated int64
	// Vanished files could not be found again at the start: lines may be lost.
	Vanished int64
}

// Entry is one complete line.
type Entry struct {
	// Text is the line without its end and without NUL bytes.
	Text string
	// Number is the line's number in its file, from 1.
	Number int64
	// Header is the first line of the same file when Config.Header is set.
	Header string
}

// Tail follows one file. It implements source.Source.
type Tail struct {
	cfg     Config
	files   []*file // The oldest first; the last one was at the path when last seen.
	resumed bool
	stats   Stats
}

var _ source.Source = (*Tail)(nil)

// New returns a Tail that goes on where its checkpoint stands. It opens nothing
// yet.
func New(c Config) (*Tail, error) {
	if c.Path == "" || c.Checkpoint == nil {
		return nil, errors.New("following a file: a path and a checkpoint are needed")
	}
	return &Tail{cfg: c.withDefaults()}, nil
}

// Name returns the configured name.
func (t *Tail) Name() string { return t.cfg.Name }

// Watch returns the file's folder.
func (t *Tail) Watch() []string { return []string{filepath.Dir(t.cfg.Path)} }

// Stats returns the counts so far.
func (t *Tail) Stats() Stats { return t.stats }

// Step returns the new lines as raw evidence.
func (t *Tail) Step(ctx context.Context) ([]source.Item, error) {
	entries, err := t.Read(ctx)
	now := t.cfg.Clock.Now()
	items := make([]source.Item, len(entries))
	for i, e := range entries {
		items[i].Line = &source.Line{Source: t.cfg.Name, Text: e.Text, At: now}
	}
	return items, err
}

// Read is Step for a caller that parses the lines itself.
func (t *Tail) Read(ctx context.Context) ([]Entry, error) {
	if err := t.discoverFiles(); err != nil {
		return nil, fmt.Errorf("looking for %s: %w", t.cfg.Path, err)
	}
	out := &batch{budget: t.cfg.MaxStep}
	for _, f := range t.files {
		if err := t.readFile(ctx, f, out); err != nil {
			return out.entries, fmt.Errorf("reading %s: %w", t.cfg.Path, err)
		}
	}
	t.retireOldest(out)
	t.stats.Lines += int64(len(out.entries))
	return out.entries, nil
}

// Commit saves the positions after the lines handed over so far.
func (t *Tail) Commit() error {
	if !t.resumed {
		return nil
	}
	positions := make([]history.Position, len(t.files))
	dirty := false
	for i, f := range t.files {
		positions[i] = f.pos
		dirty = dirty || f.pos != f.saved
	}
	if !dirty && len(positions) == len(t.cfg.Checkpoint.Get(t.cfg.Name)) {
		return nil
	}
	if err := t.cfg.Checkpoint.Save(t.cfg.Name, positions); err != nil {
		return err
	}
	for _, f := range t.files {
		f.saved = f.pos
	}
	return nil
}

// Close closes the open files.
func (t *Tail) Close() error {
	var failed error
	for _, f := range t.files {
		failed = errors.Join(failed, f.Close())
	}
	t.files, t.resumed = nil, false
	return failed
}

// discoverFiles brings the list of open files up to date with the folder.
func (t *Tail) discoverFiles() error {
	if !t.resumed {
		if err := t.resumeFiles(); err != nil {
			return err
		}
	}
	current, err := openFile(t.cfg.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if t.hasOpen(current.id) {
		return current.Close()
	}
	return t.followRotation(current)
}

func (t *Tail) hasOpen(id identity) bool {
	for _, f := range t.files {
		if f.id == id {
			return true
		}
	}
	return false
}

// followRotation adds the file that is now at the path, after those that were there
// since we last looked.
func (t *Tail) followRotation(current *file) error {
	if len(t.files) == 0 {
		t.files = []*file{current}
		return nil
	}
	between, err := t.openBetween(t.files[len(t.files)-1], current.id)
	if err != nil {
		return errors.Join(err, current.Close())
	}
	t.stats.Rotated++
	now := t.cfg.Clock.Now()
	t.files = append(append(t.files, between...), current)
	for _, f := range t.files {
		f.grown = now
	}
	return nil
}

// resumeFiles opens the files of the checkpoint. One that is not what it was is left
// out: at its path, if there is one, lies a new file.
func (t *Tail) resumeFiles() error {
	positions := t.cfg.Checkpoint.Get(t.cfg.Name)
	found, err := t.findRenamed(positions)
	if err != nil {
		return err
	}
	for _, f := range found {
		f.grown = t.cfg.Clock.Now()
	}
	t.files, t.resumed = found, true
	t.stats.Vanished += int64(len(positions) - len(found))
	if len(positions) == 0 && t.cfg.FromEnd {
		return t.passOver()
	}
	return nil
}

// passOver opens the file at the path behind its last complete line.
func (t *Tail) passOver() error {
	f, err := openFile(t.cfg.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := f.seekEnd(int64(t.cfg.MaxLine)); err != nil {
		return errors.Join(err, f.Close())
	}
	t.files = []*file{f}
	return nil
}
