// Package statefile keeps an adapter's small state in one JSON file that is
// either the old one or the new one, whatever kills the process and when.
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

// Read decodes the file into v, which must be a pointer. It returns false when
// there is no file. A file that cannot be understood in full is an error and is
// left as it is: an adapter that starts empty instead would deny machines that
// exist.
func Read(path string, v any) (bool, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading state: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(v); err != nil {
		return false, damaged(path, err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return false, damaged(path, errors.New("text after the end"))
	}
	return true, nil
}

func damaged(path string, err error) error {
	return fmt.Errorf("state file %s is damaged: %w; restore it, or move it away to forget its machines", path, err)
}

// Write replaces the file with v. When it returns nil the new content survives
// a crash of the process and of the machine. The folder is made when missing;
// only the user may read the file.
func Write(path string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encoding state: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("making the state folder: %w", err)
	}
	// The name is fixed, so that a crash leaves at most one stray file.
	temporary := path + ".new"
	if err := writeSynced(temporary, data); err != nil {
		return fmt.Errorf("writing state: %w", err)
	}
	if err := os.Rename(temporary, path); err != nil {
		return fmt.Errorf("replacing state: %w", err)
	}
	return syncFolder(filepath.Dir(path))
}

func writeSynced(path string, data []byte) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// syncFolder makes the rename itself durable.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("opening the state folder: %w", err)
	}
	if err := errors.Join(folder.Sync(), folder.Close()); err != nil {
		return fmt.Errorf("syncing the state folder: %w", err)
	}
	return nil
}
