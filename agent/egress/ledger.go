package egress

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// Event says which half of an exchange an entry is about.
type Event string

// A request is logged as Sent before it goes out, and as Received when its
// answer has been read: a crash between the two leaves the first.
const (
	Sent     Event = "sent"
	Received Event = "received"
)

// Entry is one line of the egress log. Sizes are of bodies, in bytes.
type Entry struct {
	Seq    int64     `json:"seq"`
	Time   time.Time `json:"time"`
	Event  Event     `json:"event"`
	Kind   Kind      `json:"kind"`
	Method string    `json:"method"`
	// Path is the URL's path; queries are not logged.
	Path   string `json:"path"`
	Status int    `json:"status,omitempty"`
	Out    int64  `json:"out"`
	In     int64  `json:"in"`
	// Body is the SHA-256, in hex, of the bytes that went out or came in.
	Body string `json:"sha256"`
	// Prev is the Hash of the entry before; empty for the first.
	Prev string `json:"prev"`
	// Hash is the SHA-256, in hex, of this entry's JSON with an empty Hash.
	Hash string `json:"hash"`
}

// seal sets the hash.
func (e *Entry) seal() error {
	e.Hash = ""
	b, err := json.Marshal(e)
	if err != nil {
		return err
	}
	s := sha256.Sum256(b)
	e.Hash = hex.EncodeToString(s[:])
	return nil
}

// ChainError says that the egress log is not what was written.
type ChainError struct {
	Path string
	Line int64
	Why  string
}

// Error names the file, the line and the fix.
func (e *ChainError) Error() string {
	return fmt.Sprintf("egress log %s, line %d: %s; keep the file as evidence, move it and its .head away, and a "+
		"new chain begins", e.Path, e.Line, e.Why)
}

// ErrInUse is returned when another process writes to the same log.
var ErrInUse = errors.New("another agent writes to this egress log: give each its own")

// Ledger appends to an egress log. It is not safe for concurrent use.
type Ledger struct {
	path string
	file *os.File
	last Entry
	size int64 // After the last whole entry.
}

// OpenLedger opens or makes the log with mode 0600 and verifies it. A last line
// that a crash cut short is removed: it was never acknowledged. The error is a
// *ChainError for a log that was changed, or ErrInUse.
func OpenLedger(path string) (*Ledger, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening egress log: %w", err)
	}
	l := &Ledger{path: path, file: f}
	if err := l.prepareFile(path); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return l, nil
}

func (l *Ledger) prepareFile(path string) error {
	info, err := l.file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return errors.Join(err, fmt.Errorf("egress log %s must be a regular file", path))
	}
	if err := syscall.Flock(int(l.file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("locking %s: %w", path, ErrInUse)
	}
	if err := l.file.Chmod(0o600); err != nil {
		return fmt.Errorf("protecting egress log: %w", err)
	}
	chain, err := newChain(path)
	if err != nil {
		return err
	}
	if err := chain.readEntries(l.file); err != nil {
		return err
	}
	l.last, l.size = chain.last, chain.size
	return l.file.Truncate(l.size)
}

// Append writes one entry and makes it durable. Seq, Prev and Hash are set here.
// A failed write leaves no part of the entry behind.
func (l *Ledger) Append(e Entry) error {
	e.Seq, e.Prev = l.last.Seq+1, l.last.Hash
	e.Time = e.Time.UTC()
	if err := e.seal(); err != nil {
		return fmt.Errorf("appending to egress log: %w", err)
	}
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("appending to egress log: %w", err)
	}
	line = append(line, '\n')
	_, err = l.file.WriteAt(line, l.size)
	if err = errors.Join(err, l.file.Sync()); err == nil {
		err = head{Seq: e.Seq, Hash: e.Hash}.writeFile(l.path)
	}
	if err != nil {
		return fmt.Errorf("appending to egress log: %w", errors.Join(err, l.file.Truncate(l.size)))
	}
	l.last, l.size = e, l.size+int64(len(line))
	return nil
}

// Close closes the log and lets other processes have it.
func (l *Ledger) Close() error { return l.file.Close() }

// Verify reads the log at path and returns its last entry, whose Seq is the
// number of entries; it is the zero Entry of an empty log, and of one that is not
// there and never was. The error is a *ChainError for the first line that was
// changed, added, removed or cut. Lines removed from the end are known by the note
// beside the log: who can change both leaves no trace, so compare with a last
// entry noted elsewhere.
func Verify(path string) (Entry, error) {
	c, err := newChain(path)
	if err != nil {
		return Entry{}, err
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Entry{}, c.checkComplete()
	}
	if err != nil {
		return Entry{}, fmt.Errorf("verifying egress log: %w", err)
	}
	defer f.Close()
	if err := c.readEntries(f); err != nil {
		return c.last, err
	}
	if c.torn {
		return c.last, c.broken("the last line is cut short")
	}
	return c.last, nil
}

// chain checks a log from its start.
type chain struct {
	path string
	head head // The last entry as it was noted.
	last Entry
	size int64
	torn bool // Bytes follow the last end of line.
}

func newChain(path string) (chain, error) {
	h, err := readHead(path)
	return chain{path: path, head: h}, err
}

// checkComplete reports entries that were noted and are not there, and a note that is missing or older than a crash
// leaves it.
func (c *chain) checkComplete() error {
	switch behind := c.last.Seq - c.head.Seq; {
	case behind < 0:
		return c.broken(fmt.Sprintf("it and what followed are missing: %d entries were written", c.head.Seq))
	case behind > 1 && c.wasWrittenMeanwhile():
		return nil
	case behind > 1 && c.head.Seq == 0:
		return c.broken(fmt.Sprintf("there are %d entries, and %s, which notes the last one, is missing: whether lines "+
			"were removed from the end cannot be told", c.last.Seq, headPath(c.path)))
	case behind > 1:
		return c.broken(fmt.Sprintf("there are %d entries, and %s notes entry %d as the last: one of the two was replaced",
			c.last.Seq, headPath(c.path), c.head.Seq))
	default:
		return nil
	}
}

// wasWrittenMeanwhile reports whether an agent went on writing while the log was read, after its note was.
func (c *chain) wasWrittenMeanwhile() bool {
	now, err := readHead(c.path)
	return err == nil && now.Seq >= c.last.Seq-1
}

func (c *chain) broken(why string) error {
	return &ChainError{Path: c.path, Line: c.last.Seq + 1, Why: why}
}

func (c *chain) readEntries(r io.Reader) error {
	buffered := bufio.NewReaderSize(r, 64<<10)
	for {
		line, err := buffered.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			c.torn = len(line) > 0
			return c.checkComplete()
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			return c.broken("the line is longer than any entry")
		}
		if err != nil {
			return fmt.Errorf("reading egress log: %w", err)
		}
		if err := c.checkLink(line); err != nil {
			return err
		}
	}
}

// checkLink checks one line against the one before.
func (c *chain) checkLink(line []byte) error {
	var e Entry
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&e); err != nil {
		return c.broken("the line is not an entry")
	}
	again := e
	if err := again.seal(); err != nil || again.Hash != e.Hash {
		return c.broken("the entry was changed")
	}
	if e.Seq == c.head.Seq && e.Hash != c.head.Hash {
		return c.broken("the entry is not the one that was written")
	}
	if e.Prev != c.last.Hash || e.Seq != c.last.Seq+1 {
		return c.broken("the entry does not follow the one before")
	}
	canonical, err := json.Marshal(e)
	if err != nil || !bytes.Equal(append(canonical, '\n'), line) {
		return c.broken("the line was changed")
	}
	c.last, c.size = e, c.size+int64(len(line))
	return nil
}
