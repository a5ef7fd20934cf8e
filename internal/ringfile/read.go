package ringfile

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
)

// FileError says what is wrong with a file, and after how many whole records.
type FileError struct {
	Path  string
	Whole int
	Err   error
}

// Error names the file.
func (e *FileError) Error() string {
	switch {
	case errors.Is(e.Err, io.ErrUnexpectedEOF):
		return fmt.Sprintf("%s ends within a record, after %d whole ones", e.Path, e.Whole)
	case e.Whole == 0:
		return fmt.Sprintf("%s has no records that can be read: %v", e.Path, e.Err)
	}
	return fmt.Sprintf("%s cannot be read after %d records: %v", e.Path, e.Whole, e.Err)
}

// Unwrap is what went wrong.
func (e *FileError) Unwrap() error { return e.Err }

// mostRecord bounds what one record may be when it is not compressed any more.
const mostRecord = 1 << 30

var errTooLong = fmt.Errorf("a record is longer than %d bytes", mostRecord)

// Read returns the records of a file, which a Ring has written or which has plain JSON, one after the other. The last
// thing that it returns may be a *FileError.
func Read(path string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		f, err := os.Open(path)
		if err != nil {
			if is, found := errors.AsType[*os.PathError](err); found { // which names the file once more
				err = is.Err
			}
			yield(nil, &FileError{Path: path, Err: err})
			return
		}
		defer func() { _ = f.Close() }()
		in := bufio.NewReader(f)
		next := plain(in)
		if head, _ := in.Peek(2); len(head) == 2 && head[0] == 0x1f && head[1] == 0x8b {
			next = packed(in)
		}
		for whole := 0; ; whole++ {
			record, err := next()
			if errors.Is(err, io.EOF) && whole > 0 {
				return
			}
			if err != nil {
				yield(nil, &FileError{Path: path, Whole: whole, Err: err})
				return
			}
			if !yield(record, nil) {
				return
			}
		}
	}
}

// packed reads records that are compressed, each by itself.
func packed(in *bufio.Reader) func() ([]byte, error) {
	var z gzip.Reader
	return func() ([]byte, error) {
		if _, err := in.Peek(1); err != nil {
			return nil, err
		}
		if err := z.Reset(in); err != nil {
			return nil, cutShort(err)
		}
		z.Multistream(false)
		record, err := io.ReadAll(io.LimitReader(&z, mostRecord+1))
		if err == nil && len(record) > mostRecord {
			err = errTooLong
		}
		return record, err
	}
}

// plain reads records that are not compressed.
func plain(in io.Reader) func() ([]byte, error) {
	d := json.NewDecoder(in)
	return func() ([]byte, error) {
		var record json.RawMessage
		err := d.Decode(&record)
		return record, err
	}
}

// cutShort is an end within the head of a record.
func cutShort(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
