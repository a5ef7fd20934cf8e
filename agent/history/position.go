package history

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
)

// HeadSize is how many bytes of a file's beginning its fingerprint covers at
// most.
const HeadSize = 1024

// Position is how far one file has been handed over. It names the file by
// device, inode and the bytes it begins with, because a path is reused by
// rotation and an inode by deletion.
type Position struct {
	// Dev and Ino are the device and inode of the file.
	Dev uint64 `json:"dev"`
	Ino uint64 `json:"ino"`
	// Offset is the first byte not handed over: the start of a line.
	Offset int64 `json:"offset"`
	// Lines is the number of lines before Offset.
	Lines int64 `json:"lines"`
	// Head covers bytes before Offset only: those of a file that grows never
	// change.
	Head Head `json:"head"`
}

// Head is the fingerprint of a file's beginning: the SHA-256, in hex, of its
// first Size bytes.
type Head struct {
	Size int    `json:"size"`
	Sum  string `json:"sum"`
}

// HeadOf returns the fingerprint of the first size bytes of r, at most HeadSize.
func HeadOf(r io.ReaderAt, size int64) (Head, error) {
	buf := make([]byte, min(max(size, 0), HeadSize))
	if n, err := r.ReadAt(buf, 0); n < len(buf) {
		return Head{}, fmt.Errorf("reading the head of a file: %w", err)
	}
	sum := sha256.Sum256(buf)
	return Head{Size: len(buf), Sum: hex.EncodeToString(sum[:])}, nil
}

// Matches reports whether r still begins with the fingerprinted bytes. A file
// that is too short does not.
func (h Head) Matches(r io.ReaderAt) bool {
	if h.Size == 0 {
		return true
	}
	now, err := HeadOf(r, int64(h.Size))
	return err == nil && now == h
}

// check says why the position cannot have been written by us.
func (p Position) check() error {
	switch {
	case p.Offset < 0, p.Lines < 0, p.Lines > p.Offset:
		return fmt.Errorf("offset %d and lines %d do not fit", p.Offset, p.Lines)
	case p.Head.Size < 0, p.Head.Size > HeadSize, int64(p.Head.Size) > p.Offset:
		return fmt.Errorf("head size %d does not fit offset %d", p.Head.Size, p.Offset)
	case p.Head.Size > 0 && len(p.Head.Sum) != hex.EncodedLen(sha256.Size):
		return fmt.Errorf("head sum is not a SHA-256")
	}
	return nil
}
