package jobs

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"os"
	"time"

	"github.com/forewarm/forewarm/agent/history"
	"github.com/forewarm/forewarm/agent/source"
	"github.com/forewarm/forewarm/agent/source/tail"
)

// maxItems bounds what one Step of a snapshot returns.
const maxItems = 10_000

// snapshot reads a whole file whenever it has changed. It remembers 16 bytes per
// job: a hash of the ID and one of the record last handed over.
type snapshot struct {
	cfg     Config
	file    *os.File // While a reading is under way.
	scanner *history.Scanner
	version version // Of the file last opened.
	seed    maphash.Seed
	seen    map[uint64]uint64
	counts  history.Report // Of the last reading that has ended.
}

// version tells whether a file was replaced or written to.
type version struct {
	size     int64
	modified time.Time
	info     fs.FileInfo
}

func (v version) isSame(w version) bool {
	return v.info != nil && os.SameFile(v.info, w.info) && v.size == w.size && v.modified.Equal(w.modified)
}

func newSnapshot(c Config) *snapshot {
	return &snapshot{cfg: c, seed: maphash.MakeSeed(), seen: map[uint64]uint64{}}
}

func (s *snapshot) commit() error { return nil }

func (s *snapshot) close() error {
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file, s.scanner = nil, nil
	return err
}

func (s *snapshot) report() history.Report {
	if s.scanner != nil {
		return s.scanner.Report()
	}
	return s.counts
}

func (s *snapshot) step(ctx context.Context) ([]source.Item, error) {
	if s.scanner == nil {
		if changed, err := s.openIfChanged(); err != nil || !changed {
			return nil, err
		}
	}
	var items []source.Item
	for len(items) < maxItems && ctx.Err() == nil {
		if !s.scanner.Scan() {
			return items, s.endReading()
		}
		if r := s.scanner.Record(); s.isNew(r) {
			items = append(items, source.Item{Record: &r})
		}
	}
	return items, ctx.Err()
}

// openIfChanged starts a reading if the file is there and has changed.
func (s *snapshot) openIfChanged() (changed bool, err error) {
	f, err := tail.Open(s.cfg.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("opening job history: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		return false, errors.Join(err, f.Close())
	}
	now := version{size: info.Size(), modified: info.ModTime(), info: info}
	if now.isSame(s.version) {
		return false, f.Close()
	}
	s.version, s.file, s.scanner = now, f, history.NewScanner(f, s.cfg.newParser())
	return true, nil
}

// endReading closes a reading. A file that was being replaced is read again when it has
// changed once more.
func (s *snapshot) endReading() error {
	failed := s.scanner.Err()
	s.counts = s.scanner.Report()
	if err := errors.Join(failed, s.close()); err != nil {
		return fmt.Errorf("reading %s: %w", s.cfg.Path, err)
	}
	return nil
}

// isNew reports whether the job is new or differs from what was handed over.
func (s *snapshot) isNew(r history.Record) bool {
	id := maphash.String(s.seed, r.ID)
	now := maphash.Comparable(s.seed, r)
	if s.seen[id] == now {
		return false
	}
	s.seen[id] = now
	return true
}
