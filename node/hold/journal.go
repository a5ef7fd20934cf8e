package hold

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/forewarm/forewarm/internal/statefile"
)

// mostJournal bounds the journal, in bytes, before the book is written anew.
const mostJournal = 1 << 20

// journal is a file with what has changed since the book was written, a line for each time that
// something did, so that what a change costs grows neither with the book nor with how many came before.
type journal struct {
	file *os.File
	size int64
	// written is what the book and the journal say of each hold.
	written map[string]string
}

// change is a line of the journal.
type change struct {
	Of        int64                      `json:"of,omitempty"` // the book that it continues
	FirstUser uint32                     `json:"first_user"`
	NextUser  uint32                     `json:"next_user"`
	Holds     map[string]json.RawMessage `json:"holds"` // null: it is forgotten
}

func journalOf(book string) string { return book + ".journal" }

// applyJournal brings a book up to date. A last line that was not written to its end was never acted upon, and what
// continues an earlier book is in this one: the machine ended before the journal was begun anew.
func (b *book) applyJournal(path string) error {
	text, err := os.ReadFile(journalOf(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading what is known of holds: %w", err)
	}
	for len(text) > 0 {
		line, rest, whole := bytes.Cut(text, []byte("\n"))
		if !whole {
			return nil
		}
		if err := b.applyChange(line); err != nil {
			return fmt.Errorf("reading what is known of holds: %s is damaged: %w", journalOf(path), err)
		}
		text = rest
	}
	return nil
}

func (b *book) applyChange(line []byte) error {
	var c change
	if err := json.Unmarshal(line, &c); err != nil || c.Of != b.Number {
		return err
	}
	b.FirstUser, b.NextUser = c.FirstUser, c.NextUser
	for id, text := range c.Holds {
		var r *record
		if err := json.Unmarshal(text, &r); err != nil {
			return err
		}
		if b.Holds[id] = r; r == nil {
			delete(b.Holds, id)
		}
	}
	return nil
}

// write makes durable what has changed in the book since it was written last.
func (b *book) write(path string) error {
	if err := b.note(path); err != nil || b.journal.file == nil {
		return err
	}
	if err := b.journal.file.Sync(); err != nil { // no half of it may come before the next line
		return errors.Join(fmt.Errorf("writing what has changed of holds: %w", err), b.journal.close())
	}
	return nil
}

// note is write for what the end of this process must not undo, and that of the machine may: it is done again then.
func (b *book) note(path string) error {
	now := map[string]string{}
	c := change{Of: b.Number, FirstUser: b.FirstUser, NextUser: b.NextUser, Holds: map[string]json.RawMessage{}}
	for id, r := range b.Holds {
		text, err := json.Marshal(r)
		if err != nil {
			return fmt.Errorf("encoding what is known of a hold: %w", err)
		}
		if now[id] = string(text); b.journal.written[id] != now[id] {
			c.Holds[id] = text
		}
	}
	for id := range b.journal.written {
		if _, there := now[id]; !there {
			c.Holds[id] = json.RawMessage("null")
		}
	}
	err := b.append(path, c)
	if err == nil {
		b.journal.written = now
	}
	return err
}

// append adds a line to the journal; where there is none, or it is long, the book is written instead.
func (b *book) append(path string, c change) error {
	j := &b.journal
	line, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("encoding what has changed of holds: %w", err)
	}
	if j.file == nil || j.size+int64(len(line)) > mostJournal {
		return b.begin(path)
	}
	if _, err = j.file.Write(append(line, '\n')); err != nil { // no half of it may come before the next line
		return errors.Join(fmt.Errorf("writing what has changed of holds: %w", err), j.close())
	}
	j.size += int64(len(line)) + 1
	return nil
}

// begin writes the book, and begins a new journal.
func (b *book) begin(path string) error {
	b.Number++
	if err := errors.Join(b.journal.close(), statefile.Write(path, b)); err != nil {
		return err
	}
	f, err := os.OpenFile(journalOf(path), os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("beginning the journal of holds: %w", err)
	}
	b.journal.file, b.journal.size = f, 0
	return nil
}

// close has the next change write the book.
func (j *journal) close() error {
	if j.file == nil {
		return nil
	}
	err := j.file.Close()
	j.file = nil
	return err
}
