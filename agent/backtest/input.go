package backtest

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/forewarm/forewarm/agent/history"
)

// Format is the form of a history.
type Format string

// The formats, as described at history.ReadCSV, ReadJSONL, ReadSacct and
// ReadKubernetes. Auto looks at the first bytes.
const (
	Auto       Format = "auto"
	CSV        Format = "csv"
	JSONL      Format = "jsonl"
	Sacct      Format = "sacct"
	Kubernetes Format = "kubernetes"
)

// Formats returns every format, Auto first.
func Formats() []Format { return []Format{Auto, Sacct, CSV, JSONL, Kubernetes} }

// Input is a history as it was read.
type Input struct {
	Format  Format
	Records []history.Record
	Report  history.Report
}

type reader func(io.Reader, history.Options, func(history.Record) error) (history.Report, error)

var readers = map[Format]reader{
	CSV: history.ReadCSV, JSONL: history.ReadJSONL, Sacct: history.ReadSacct, Kubernetes: history.ReadKubernetes,
}

// Read reads a whole history, plain or gzip. It ends with the context's error
// when that is done.
func Read(ctx context.Context, in io.Reader, format Format, o history.Options) (Input, error) {
	plain, err := openCompressed(in)
	if err != nil {
		return Input{}, err
	}
	if format == Auto {
		head, err := plain.Peek(peeked)
		if err != nil && !errors.Is(err, io.EOF) {
			return Input{}, fmt.Errorf("reading history: %w", err)
		}
		format = detectFormat(head)
	}
	read, ok := readers[format]
	if !ok {
		return Input{}, fmt.Errorf("reading history: format %q is not one of %v", format, Formats())
	}
	input := Input{Format: format}
	input.Report, err = read(plain, o, func(r history.Record) error {
		input.Records = append(input.Records, r)
		return ctx.Err()
	})
	return input, err
}

// peeked is how much of a history its format is told from, in bytes.
const peeked = 4096

// openCompressed makes a reader of the text of a history that may be compressed.
func openCompressed(in io.Reader) (*bufio.Reader, error) {
	packed := bufio.NewReaderSize(in, peeked)
	if magic, err := packed.Peek(2); err != nil || !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return packed, nil
	}
	text, err := gzip.NewReader(packed)
	if err != nil {
		return nil, fmt.Errorf("unpacking history: %w", err)
	}
	return bufio.NewReaderSize(text, peeked), nil
}

// detectFormat tells the format from the first bytes. What looks like nothing known is
// taken for CSV, whose reader says what is missing.
func detectFormat(head []byte) Format {
	head = bytes.TrimSpace(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")))
	line, _, _ := bytes.Cut(head, []byte("\n"))
	switch {
	case bytes.HasPrefix(head, []byte("{")) && bytes.Contains(line, []byte(`"job_id"`)):
		return JSONL
	case bytes.HasPrefix(head, []byte("{")):
		return Kubernetes
	case bytes.ContainsRune(line, '|'):
		return Sacct
	default:
		return CSV
	}
}
