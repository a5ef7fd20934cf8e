// Package jobs reads a job history file that grows, as records.
//
// CSV and JSONL files are appended to: only new lines are read, with the resume
// positions of package tail. The text of sacct or squeue, and any file that is
// compressed with gzip, is a snapshot that somebody replaces: it is read whole
// whenever it has changed, and only jobs that are new or differ are handed over.
//
// A job may be handed over more than once, with the same ID: after a restart,
// and for every change of its state. The later record replaces the earlier one.
package jobs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/forewarm/forewarm/agent/history"
	"github.com/forewarm/forewarm/agent/source"
	"github.com/forewarm/forewarm/agent/source/tail"
	"github.com/forewarm/forewarm/internal/clock"
)

// Format is the form of a history file.
type Format string

// The formats, as described at history.ReadCSV, ReadJSONL, ReadSacct and
// NewSqueue.
const (
	CSV    Format = "csv"
	JSONL  Format = "jsonl"
	Sacct  Format = "sacct"
	Squeue Format = "squeue"
)

var parsers = map[Format]func(history.Options) history.Parser{
	CSV: history.NewCSV, JSONL: history.NewJSONL, Sacct: history.NewSacct, Squeue: history.NewSqueue,
}

// Config says which history to read.
type Config struct {
	// Path is the history file. It need not exist yet.
	Path string
	// Name is the source's name and its key in the checkpoint; empty means Path.
	Name string
	// Format is the form of the file; required.
	Format Format
	// Options say how to read it.
	Options history.Options
	// Checkpoint keeps the resume positions; required.
	Checkpoint *history.Checkpoint
	// Clock tells the time; nil means the system's.
	Clock clock.Clock
}

// follower is one way to read a file.
type follower interface {
	step(context.Context) ([]source.Item, error)
	commit() error
	close() error
	report() history.Report
}

// Jobs reads one history file. It implements source.Source.
type Jobs struct {
	cfg   Config
	inner follower // nil until the file shows which one it needs.
}

var _ source.Source = (*Jobs)(nil)

// New returns a source for the file. It opens nothing yet.
func New(c Config) (*Jobs, error) {
	if c.Path == "" || c.Checkpoint == nil {
		return nil, errors.New("reading a job history: a path and a checkpoint are needed")
	}
	if parsers[c.Format] == nil {
		return nil, fmt.Errorf("reading a job history: format %q is not one of csv, jsonl, sacct, squeue", c.Format)
	}
	if c.Name == "" {
		c.Name = c.Path
	}
	return &Jobs{cfg: c}, nil
}

// newParser returns a fresh parser for the format.
func (c Config) newParser() history.Parser { return parsers[c.Format](c.Options) }

// Name returns the configured name.
func (j *Jobs) Name() string { return j.cfg.Name }

// Watch returns the file's folder.
func (j *Jobs) Watch() []string { return []string{filepath.Dir(j.cfg.Path)} }

// Report counts the rows: of a growing file those read since the source was
// made, of a snapshot those of the latest reading.
func (j *Jobs) Report() history.Report {
	if j.inner == nil {
		return history.Report{}
	}
	return j.inner.report()
}

// Step returns new and changed jobs.
func (j *Jobs) Step(ctx context.Context) ([]source.Item, error) {
	if j.inner == nil {
		if err := j.chooseReader(); err != nil || j.inner == nil {
			return nil, err
		}
	}
	return j.inner.step(ctx)
}

// Commit makes the resume position durable; a snapshot has none.
func (j *Jobs) Commit() error {
	if j.inner == nil {
		return nil
	}
	return j.inner.commit()
}

// Close closes what is open.
func (j *Jobs) Close() error {
	if j.inner == nil {
		return nil
	}
	return j.inner.close()
}

// chooseReader looks at the file, once it is there and not empty, to see whether it
// grows or is replaced.
func (j *Jobs) chooseReader() error {
	if j.cfg.Format == Sacct || j.cfg.Format == Squeue {
		j.inner = newSnapshot(j.cfg)
		return nil
	}
	packed, known, err := isGzip(j.cfg.Path)
	if err != nil || !known {
		return err
	}
	if packed {
		j.inner = newSnapshot(j.cfg)
		return nil
	}
	j.inner, err = newGrowing(j.cfg)
	return err
}

// isGzip looks for gzip's magic bytes. known is false while the file is missing
// or too short to say.
func isGzip(path string) (packed, known bool, err error) {
	f, err := tail.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, false, nil
	}
	if err != nil {
		return false, false, fmt.Errorf("opening job history: %w", err)
	}
	defer f.Close()
	var magic [2]byte
	if _, err := io.ReadFull(f, magic[:]); err != nil {
		return false, false, nil
	}
	return magic == [2]byte{0x1f, 0x8b}, true, nil
}
