package history

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sync"

	"github.com/forewarm/forewarm/internal/statefile"
)

// maxCheckpoint bounds what is read of a checkpoint file, in bytes.
const maxCheckpoint = 64 << 20

// DamagedError says that a checkpoint file exists but cannot be trusted.
type DamagedError struct {
	Path string
	Err  error
}

// Error names the file and the fix.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("checkpoint %s is damaged (%v): move it away to read every source from its start again", e.Path,
		e.Err)
}

// Unwrap returns what was wrong with the file.
func (e *DamagedError) Unwrap() error { return e.Err }

// Checkpoint keeps the resume positions of all sources in one JSON file, mode
// 0600. A source has several positions, the oldest file first, while it drains
// rotated files. It is safe for concurrent use by the sources of one process;
// two processes must not share a file.
type Checkpoint struct {
	mu    sync.Mutex
	path  string
	files map[string][]Position
}

type checkpointFile struct {
	Version int                   `json:"version"`
	Files   map[string][]Position `json:"files"`
}

// OpenCheckpoint reads the file at path; a missing file is an empty checkpoint.
// The error is a *DamagedError when the file is not a checkpoint.
func OpenCheckpoint(path string) (*Checkpoint, error) {
	c := &Checkpoint{path: path, files: map[string][]Position{}}
	data, err := readCheckpoint(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading checkpoint: %w", err)
	}
	file, err := parseCheckpoint(data)
	if err != nil {
		return nil, &DamagedError{Path: path, Err: err}
	}
	if file.Files != nil {
		c.files = file.Files
	}
	return c, nil
}

func readCheckpoint(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxCheckpoint+1))
}

func parseCheckpoint(data []byte) (checkpointFile, error) {
	var file checkpointFile
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&file); err != nil {
		return file, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return file, errors.New("text after the end")
	}
	if file.Version != 1 {
		return file, fmt.Errorf("version %d is not 1", file.Version)
	}
	for name, positions := range file.Files {
		for _, p := range positions {
			if err := p.check(); err != nil {
				return file, fmt.Errorf("%q: %w", name, err)
			}
		}
	}
	return file, nil
}

// Get returns the positions of a source, the oldest file first; none when it
// was never saved. The caller owns the slice.
func (c *Checkpoint) Get(source string) []Position {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.files[source])
}

// Save replaces the positions of one source and makes the file durable before
// it returns. When it fails, the old file and the old positions stand.
func (c *Checkpoint) Save(source string, positions []Position) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	old, had := c.files[source]
	c.files[source] = slices.Clone(positions)
	if err := c.writeFile(); err != nil {
		delete(c.files, source)
		if had {
			c.files[source] = old
		}
		return fmt.Errorf("saving checkpoint: %w", err)
	}
	return nil
}

// Names returns the sources that have positions, in order.
func (c *Checkpoint) Names() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.files))
}

// Forget drops the positions of a source whose file is gone, durably. One that
// has none is no error.
func (c *Checkpoint) Forget(source string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	old, had := c.files[source]
	if !had {
		return nil
	}
	delete(c.files, source)
	if err := c.writeFile(); err != nil {
		c.files[source] = old
		return fmt.Errorf("saving checkpoint: %w", err)
	}
	return nil
}

// writeFile puts a complete new file in the place of the old one: a crash leaves
// one or the other.
func (c *Checkpoint) writeFile() error {
	data, err := json.Marshal(checkpointFile{Version: 1, Files: c.files})
	if err != nil {
		return err
	}
	return statefile.Replace(c.path, append(data, '\n'))
}
