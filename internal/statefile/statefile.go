// Package statefile replaces small files atomically: a reader finds the old or
// the new content, even if the process or the machine dies, or another process
// writes at the same time.
package statefile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Read decodes the JSON file into v, which must be a pointer. It returns false
// when there is no file. A file that cannot be understood in full is an error and
// is left as it is: who starts empty instead would deny what the file knows.
func Read(path string, v any) (bool, error) {
	return read(path, v, (*json.Decoder).DisallowUnknownFields)
}

// ReadKnown is Read for a program in whose place an earlier version may come
// again: fields that v does not have are left out. Who writes the file anew loses
// what they said.
func ReadKnown(path string, v any) (bool, error) { return read(path, v, func(*json.Decoder) {}) }

func read(path string, v any, prepare func(*json.Decoder)) (bool, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading state: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	prepare(decoder)
	if err := decoder.Decode(v); err != nil {
		return false, damagedError(path, err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return false, damagedError(path, errors.New("text after the end"))
	}
	return true, nil
}

func damagedError(path string, err error) error {
	return fmt.Errorf("state file %s is damaged: %w; restore it, or move it away to begin without what it knows", path,
		err)
}

// Write replaces the file with v, encoded as JSON, as Replace does.
func Write(path string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encoding state: %w", err)
	}
	return Replace(path, append(data, '\n'))
}

// Replace puts data in the place of the file's content. When it returns nil the
// new content survives a crash of the process and of the machine. The folder is
// made when missing; only the user may read the file.
func Replace(path string, data []byte) error {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("making the folder of %s: %w", path, err)
	}
	// A name of its own, for another process may write the same file.
	file, err := os.CreateTemp(folder, "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	_, err = file.Write(data)
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("writing %s: %w", path, err), os.Remove(file.Name()))
	}
	return SyncFolder(folder)
}

// SyncFolder makes a rename in the folder durable.
func SyncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("opening %s to sync it: %w", path, err)
	}
	if err := errors.Join(folder.Sync(), folder.Close()); err != nil {
		return fmt.Errorf("syncing %s: %w", path, err)
	}
	return nil
}
