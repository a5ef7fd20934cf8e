// Package ringfile keeps the newest records of a program in a folder that never grows beyond a bound.
//
// A record is one line of JSON. Each is compressed by itself and appended to the newest file in one write, so that a
// crash costs what was being written and nothing before it, and any program that reads gzip reads the files. A process
// begins a file of its own, and never appends to one that it finds. The oldest files are deleted.
package ringfile

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Ring is the writer of a folder. It is made by Open, and is for one goroutine at a time.
type Ring struct {
	folder, prefix string
	keep           int64
	file           *os.File // nil: the next record begins one
	size           int64    // of it
	begun          int      // files by this process
}

const (
	suffix = ".json.gz"
	// parts is how many files share the bound: what is deleted at once is one of them.
	parts = 8
	// owner is who may read the files: they say what tenants run.
	owner = 0o600
)

// Open returns the ring of a folder, which it makes, of files whose names begin with a prefix and that have so many
// bytes together at most.
func Open(folder, prefix string, keep int64) (*Ring, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of records: %w", err)
	}
	return &Ring{folder: folder, prefix: prefix, keep: keep}, nil
}

// TooLargeError says that a record alone is larger than the ring.
type TooLargeError struct{ Has, Keep int64 }

// Error names both sizes.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("a record of %d bytes is larger than all that is kept, %d", e.Has, e.Keep)
}

// Add appends a record, and deletes the oldest files that there is no room for beside it. After an error the ring is
// as usable as before, without the record.
func (r *Ring) Add(record []byte, now time.Time) error {
	packed, err := pack(record)
	if err != nil {
		return err
	}
	size := int64(len(packed))
	if size > r.keep {
		return &TooLargeError{Has: size, Keep: r.keep}
	}
	if r.file != nil && r.size+size > max(r.keep/parts, 1) {
		if err := r.Close(); err != nil {
			return err
		}
	}
	if err := r.makeRoom(size); err != nil {
		return err
	}
	if r.file == nil {
		if err := r.begin(now); err != nil {
			return err
		}
	}
	if _, err := r.file.Write(packed); err != nil {
		return fmt.Errorf("writing a record: %w", errors.Join(err, r.breakOff()))
	}
	r.size += size
	return nil
}

// breakOff ends the file before a record that was written in part. One that would have no record is removed: a disk
// that stays full would get another such file with each.
func (r *Ring) breakOff() error {
	if r.size == 0 {
		return errors.Join(os.Remove(r.file.Name()), r.Close())
	}
	return errors.Join(r.file.Truncate(r.size), r.Close())
}

// Close ends the file that is being written. Another record begins the next one.
func (r *Ring) Close() error {
	if r.file == nil {
		return nil
	}
	err := r.file.Close()
	r.file, r.size = nil, 0
	if err != nil {
		return fmt.Errorf("closing a file of records: %w", err)
	}
	return nil
}

func (r *Ring) begin(now time.Time) error {
	r.begun++
	at := now.UTC().Format("20060102T150405.000000Z") // so that names are in the order of time
	name := fmt.Sprintf("%s-%s-%d-%03d%s", r.prefix, at, os.Getpid(), r.begun, suffix)
	f, err := os.OpenFile(filepath.Join(r.folder, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, owner)
	if err != nil {
		return fmt.Errorf("beginning a file of records: %w", err)
	}
	r.file, r.size = f, 0
	return nil
}

// makeRoom deletes the oldest files until so many bytes more are within the bound. The one that is being written is
// the last to go.
func (r *Ring) makeRoom(more int64) error {
	all, err := r.list()
	if err != nil {
		return err
	}
	sum := more
	for _, f := range all {
		sum += f.size
	}
	for _, f := range all {
		if sum <= r.keep {
			break
		}
		if r.file != nil && f.path == r.file.Name() {
			if err := r.Close(); err != nil {
				return err
			}
		}
		// Another process that shares the folder may have been first.
		if err := os.Remove(f.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("deleting the oldest records: %w", err)
		}
		sum -= f.size
	}
	return nil
}

type listed struct {
	path string
	size int64
}

// list returns the files of the ring, the oldest first.
func (r *Ring) list() (all []listed, err error) {
	entries, err := os.ReadDir(r.folder)
	if err != nil {
		return nil, fmt.Errorf("listing the records: %w", err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), r.prefix+"-") || !strings.HasSuffix(e.Name(), suffix) {
			continue
		}
		if is, err := e.Info(); err == nil { // else it was deleted meanwhile
			all = append(all, listed{filepath.Join(r.folder, e.Name()), is.Size()})
		}
	}
	slices.SortFunc(all, func(a, b listed) int { return cmp.Compare(a.path, b.path) })
	return all, nil
}

func pack(record []byte) ([]byte, error) {
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err != nil {
		return nil, fmt.Errorf("compressing a record: %w", err)
	}
	for _, part := range [][]byte{record, {'\n'}} {
		if _, err := z.Write(part); err != nil {
			return nil, fmt.Errorf("compressing a record: %w", err)
		}
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("compressing a record: %w", err)
	}
	return out.Bytes(), nil
}
