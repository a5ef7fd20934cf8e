package jobs

import (
	"bytes"
	"unicode/utf8"
)

// terminalFilter lets through what a job's output may do to a terminal: text, colours and other attributes of letters
// (SGR), and what progress bars use to write their line anew: carriage return, backspace and erasing in the line. All
// else that a terminal obeys is dropped: titles and the clipboard (OSC), device strings, moves to other lines, resets,
// and the marks that set the direction of text, with which a line shows something else than it says (CVE-2021-42574).
//
// It is fed one stream piece by piece, and keeps what a piece has only the beginning of.
type terminalFilter struct {
	state    filterState
	sequence []byte // the beginning of one that may be let through
	private  bool   // it has what no attribute of letters has
	left     int    // bytes of a character that are still to come
	lead     []byte // the beginning of a character that may be one to drop
	dropped  int    // bytes of a string
	coloured bool   // letters have attributes now
}

type filterState int

const (
	inText   filterState = iota
	inLead               // the beginning of a character was read that may be one to drop
	inEscape             // ESC was read
	inShort              // and something that goes before its last character
	inCSI
	inString // up to BEL or ST
	inStringEscape
)

const (
	esc = 0x1b
	bel = 0x07
	can = 0x18
	sub = 0x1a
	del = 0x7f
)

// Bounds of what a sequence may take: of one that is longer the rest is text.
const (
	longestSequence = 64
	longestString   = 4096
)

// Filter returns what of the next piece may go to a terminal.
func (f *terminalFilter) Filter(data []byte) []byte {
	out := make([]byte, 0, len(data))
	for _, b := range data {
		out = f.next(out, b)
	}
	return out
}

func (f *terminalFilter) next(out []byte, b byte) []byte {
	switch f.state {
	case inLead:
		return f.follow(out, b)
	case inEscape:
		return f.escape(out, b)
	case inShort:
		if b < ' ' || b > '/' {
			f.state = inText
		}
		return out
	case inCSI:
		return f.control(out, b)
	case inString, inStringEscape:
		return f.string(out, b)
	}
	return f.text(out, b)
}

// follow reads the byte behind the beginning of a character that may be one to drop.
func (f *terminalFilter) follow(out []byte, b byte) []byte {
	f.state = inText
	if !isContinuation(b) {
		return f.text(out, b)
	}
	switch f.lead = append(f.lead, b); {
	case len(f.lead) == 2 && f.lead[0] == 0xe2 && (b == 0x80 || b == 0x81):
		f.state = inLead
		return out
	case isDropped(f.lead):
		return out
	}
	f.left = continuations(f.lead[0]) + 1 - len(f.lead)
	return append(out, f.lead...)
}

// mayBeDropped reports whether a character that begins with a byte may be one to drop.
func mayBeDropped(b byte) bool { return b == 0xc2 || b == 0xd8 || b == 0xe2 }

// isDropped reports whether a character is none for terminals.
func isDropped(character []byte) bool {
	switch r, _ := utf8.DecodeRune(character); {
	case r >= 0x80 && r <= 0x9f: // C1: a terminal takes some for ESC and a letter
		return true
	default: // of Unicode's Bidi_Control
		return r == 0x61c || r == 0x200e || r == 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
	}
}

func isContinuation(b byte) bool { return b&0xc0 == 0x80 }

// text reads a byte outside of sequences.
func (f *terminalFilter) text(out []byte, b byte) []byte {
	switch {
	case isContinuation(b):
		if f.left == 0 {
			return out // of no character: C1 for terminals without UTF-8
		}
		f.left--
		return append(out, b)
	case b == esc:
		f.state, f.left = inEscape, 0
		return out
	case mayBeDropped(b):
		f.state, f.left, f.lead = inLead, 0, append(f.lead[:0], b)
		return out
	case b == '\n' || b == '\r' || b == '\t' || b == '\b' || b >= ' ' && b != del:
		f.left = continuations(b)
		return append(out, b)
	}
	f.left = 0
	return out
}

// continuations is how many bytes follow the first one of a character.
func continuations(b byte) int {
	switch {
	case b >= 0xf0:
		return 3
	case b >= 0xe0:
		return 2
	case b >= 0xc0:
		return 1
	}
	return 0
}

// escape reads the byte behind ESC.
func (f *terminalFilter) escape(out []byte, b byte) []byte {
	f.state = inText
	switch {
	case b == '[':
		f.state, f.sequence, f.private = inCSI, append(f.sequence[:0], esc, '['), false
	case b == ']' || b == 'P' || b == 'X' || b == '^' || b == '_':
		f.state, f.dropped = inString, 0
	case b >= ' ' && b <= '/':
		f.state = inShort
	case b < ' ' || b >= del: // not a sequence
		return f.text(out, b)
	}
	return out
}

// control reads a byte of a sequence that ESC [ began.
func (f *terminalFilter) control(out []byte, b byte) []byte {
	f.sequence = append(f.sequence, b)
	switch {
	case b >= ' ' && b < '@' && len(f.sequence) < longestSequence:
		f.private = f.private || b < '0' || b > ';'
		return out
	case (b == 'm' || b == 'K') && !f.private:
		out = append(out, f.sequence...)
		if b == 'm' { // all else than zeros sets something
			f.coloured = len(bytes.Trim(f.sequence[2:], "0;:m")) > 0
		}
	case b < ' ' || b >= del: // not a sequence
		f.state = inText
		return f.text(out, b)
	}
	f.state = inText
	return out
}

// string reads a byte of a string, which a line feed ends, too: what has no end must not hide all that follows.
func (f *terminalFilter) string(out []byte, b byte) []byte {
	f.dropped++
	switch {
	case b == bel || b == can || b == sub || f.state == inStringEscape && b == '\\':
		f.state = inText
	case f.state == inStringEscape:
		return f.escape(out, b) // which ends the string, and begins anew
	case b == esc:
		f.state = inStringEscape
	case b == '\n' || f.dropped > longestString:
		f.state = inText
		return f.text(out, b)
	}
	return out
}
