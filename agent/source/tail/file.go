package tail

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"github.com/forewarm/forewarm/agent/history"
)

// chunk is how many bytes are read at once.
const chunk = 64 << 10

// file is one open file and how far it has been read.
type file struct {
	*os.File
	id    identity
	pos   history.Position // After the last line handed over.
	saved history.Position // As the checkpoint has it.
	// scanned counts the bytes after pos that hold no end of line. partial is
	// their text, unless they are already too many for a line.
	scanned int64
	partial []byte
	long    bool
	header  string
	size    int64     // The most bytes that were read.
	grown   time.Time // When size last grew, or the file was found to be rotated.
}

// batch collects the lines of one Read.
type batch struct {
	entries []Entry
	budget  int64
}

func openFile(path string) (*file, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	id := identityOf(info)
	return &file{File: f, id: id, pos: history.Position{Dev: id.dev, Ino: id.ino}}, nil
}

// continuesAt reports whether the open file is the one of the position, so that
// what is before the offset has been read.
func (f *file) continuesAt(p history.Position) bool {
	info, err := f.Stat()
	if err != nil || info.Size() < p.Offset || !p.Head.Matches(f) {
		return false
	}
	return p.Offset == 0 || f.checkSeam(p.Offset)
}

// checkSeam reports whether a line can begin at the offset: behind an end of line or
// a hole. It sees most files that were cut and have grown past the offset again.
func (f *file) checkSeam(offset int64) bool {
	var before [1]byte
	_, err := f.ReadAt(before[:], offset-1)
	return err == nil && (before[0] == '\n' || before[0] == 0)
}

func (f *file) restartScan() {
	f.pos = history.Position{Dev: f.id.dev, Ino: f.id.ino}
	f.scanned, f.partial, f.long, f.header = 0, nil, false, ""
	f.size = 0
}

func (f *file) noteGrowth(now time.Time) {
	if end := f.pos.Offset + f.scanned; end > f.size {
		f.size, f.grown = end, now
	}
}

// scanAgain forgets an incomplete line, which is read again: what was there may have
// been replaced. Only a line that is too long is not scanned twice, as long as
// the file holds what was scanned.
func (f *file) scanAgain() {
	info, err := f.Stat()
	if !f.long || err != nil || info.Size() < f.pos.Offset+f.scanned {
		f.scanned, f.partial, f.long = 0, f.partial[:0], false
	}
}

// seekEnd moves behind the last end of line in the last limit bytes, or to the
// start of the file if there is none.
func (f *file) seekEnd(limit int64) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	from := max(0, info.Size()-limit)
	end, err := io.ReadAll(io.NewSectionReader(f, from, info.Size()-from))
	if err != nil {
		return err
	}
	if i := bytes.LastIndexByte(end, '\n'); i >= 0 {
		f.pos.Offset = from + int64(i) + 1
		f.updateFingerprint()
	}
	return nil
}

// updateFingerprint extends the head to the bytes that have been read. A file that is
// cut in this moment keeps its old head and is found out at the next look.
func (f *file) updateFingerprint() {
	if f.pos.Head.Size == history.HeadSize || int64(f.pos.Head.Size) == f.pos.Offset {
		return
	}
	if head, err := history.HeadOf(f, f.pos.Offset); err == nil {
		f.pos.Head = head
	}
}

// readFile takes the complete lines of one file until its end or the end of the
// batch's budget.
func (t *Tail) readFile(ctx context.Context, f *file, out *batch) error {
	if !f.continuesAt(f.pos) {
		f.restartScan()
		t.stats.Truncated++
	}
	f.scanAgain()
	buf := make([]byte, chunk)
	for out.budget > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := f.ReadAt(buf[:min(chunk, out.budget)], f.pos.Offset+f.scanned)
		if n > 0 {
			out.budget -= int64(n)
			t.takeLines(f, buf[:n], out)
			f.noteGrowth(t.cfg.Clock.Now())
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if n == 0 || err != nil {
			break
		}
	}
	f.updateFingerprint()
	return nil
}

// takeLines cuts the bytes that follow what has been scanned into lines.
func (t *Tail) takeLines(f *file, data []byte, out *batch) {
	for len(data) > 0 {
		if f.scanned == 0 {
			data = f.skipHole(data)
		}
		end := bytes.IndexByte(data, '\n')
		if end < 0 {
			f.keepPartial(data, t.cfg.MaxLine)
			return
		}
		f.keepPartial(data[:end], t.cfg.MaxLine)
		f.pos.Offset += f.scanned + 1
		data = data[end+1:]
		t.finishLine(f, out)
	}
}

// skipHole passes over NUL bytes at the start of a line: a writer that does not
// append leaves a hole when its file is truncated. A short hole at the end of the
// file stays: a writer may yet fill it.
func (f *file) skipHole(data []byte) []byte {
	rest := bytes.TrimLeft(data, "\x00")
	if len(rest) == 0 && len(data) < chunk {
		return data
	}
	f.pos.Offset += int64(len(data) - len(rest))
	return rest
}

// keepPartial adds to the text of the line that has no end yet.
func (f *file) keepPartial(data []byte, limit int) {
	f.scanned += int64(len(data))
	if f.long = f.long || f.scanned > int64(limit); f.long {
		f.partial = nil
		return
	}
	f.partial = append(f.partial, data...)
}

// finishLine hands over the line that ends before the offset.
func (t *Tail) finishLine(f *file, out *batch) {
	f.pos.Lines++
	text, long := string(f.partial), f.long
	f.scanned, f.partial, f.long = 0, f.partial[:0], false
	if long {
		t.stats.Long++
		return
	}
	text = strings.ReplaceAll(strings.TrimSuffix(text, "\r"), "\x00", "")
	if t.cfg.Header {
		f.rememberHeader(text, t.cfg.MaxLine)
	}
	out.entries = append(out.entries, Entry{Text: text, Number: f.pos.Lines, Header: f.header})
}

// rememberHeader sets the first line of the file, which after a resume has to be
// read again.
func (f *file) rememberHeader(text string, limit int) {
	if f.pos.Lines == 1 {
		f.header = text
	}
	if f.header != "" {
		return
	}
	start := make([]byte, limit+2)
	n, _ := f.ReadAt(start, 0) // A short or failed read has no end of line, or a later row finds out.
	if end := bytes.IndexByte(start[:n], '\n'); end >= 0 {
		f.header = strings.TrimSuffix(string(start[:end]), "\r")
	}
}

// retireOldest closes rotated files that have not grown for a while. Their last line
// is handed over as it is: nobody will complete it.
func (t *Tail) retireOldest(out *batch) {
	if out.budget <= 0 {
		return
	}
	now := t.cfg.Clock.Now()
	for len(t.files) > 1 && now.Sub(t.files[0].grown) >= t.cfg.Drain {
		old := t.files[0]
		if old.scanned > 0 {
			t.finishLine(old, out)
		}
		_ = old.Close() // Only read from: nothing can be lost by it.
		t.files = t.files[1:]
	}
}
