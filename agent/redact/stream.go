package redact

import (
	"regexp"
	"strings"
	"unicode"
)

// hidden is the most lines that one secret may span: a key of 16384 bits has 200.
const hidden = 200

// Stream redacts the lines of one log in their order, and so finds secrets that span lines: keys in PEM, YAML blocks,
// commands that go on. It is not safe for concurrent use.
type Stream struct {
	redactor *Redactor
	open     unfinished
}

// unfinished says what the lines to come may still belong to.
type unfinished struct {
	kind   int // of what was opened; none when 0
	left   int // lines that it may still span
	indent int // of the line that opened a block
}

const (
	noSpan  = iota
	pemSpan // until its end
	pemTail // a line of base64 was seen: what follows in base64 belongs to it
	block   // until a line that is not indented more
	next    // the next line
	columns // a header row named a password
)

// NewStream returns a Stream that has seen nothing.
func (r *Redactor) NewStream() *Stream { return &Stream{redactor: r} }

var (
	pemBegins = regexp.MustCompile(`-{2,}\s*BEGIN[^-]{0,60}(?:KEY|CERTIFICATE|MESSAGE)[^-]{0,20}-{2,}`)
	pemEnds   = regexp.MustCompile(`-{2,}\s*END[^-]{0,80}-{2,}`)
	pemBody   = regexp.MustCompile(`(?:^|\s)[A-Za-z0-9+/]{60,76}={0,2}\s*$`)
	pemRest   = regexp.MustCompile(`(?:^|\s)[A-Za-z0-9+/]{4,76}={0,2}\s*$`)
	// opensBlock and opensNext end in the name of a secret whose value is still to come.
	opensBlock = regexp.MustCompile(`(?i)` + secretName + `["']?\s*:\s*[|>][+-]?[0-9]?\s*$`)
	opensNext  = regexp.MustCompile(`(?i)(?:` + secretName + `["']?\s*[:=]\s*\\?|-` + secretName +
		`\s*\\|\bpasswords? (?:is|was))\s*$`)
	opensTable = regexp.MustCompile(`(?i)^(?:[a-z_]+,)*(?:password|passwd|secret|token)(?:,[a-z_]+)*\s*$`)
)

// Redact is Redactor.Redact for the next line of the log.
func (s *Stream) Redact(line string) (Scrubbed, Count) {
	if name := s.advanceLine(line); name != "" {
		return Scrubbed{text: "[redacted:" + name + "]"}, Count{name: 1}
	}
	return s.redactor.Redact(line)
}

// Skip is Redact for a line that nobody will read: it only looks whether a secret begins or ends there, which is quick.
func (s *Stream) Skip(line string) { s.advanceLine(line) }

// advanceLine takes a line in, and returns the name of the secret that it is a part of, or nothing.
func (s *Stream) advanceLine(line string) string {
	base := finishLine(toPlainText(boundLine(line, 8*s.redactor.maxLine)))
	indent := len(line) - len(strings.TrimLeft(line, " \t"))
	name := s.belongsTo(base, indent)
	if name == "" {
		s.noteOpening(base, indent)
	}
	return name
}

// belongsTo returns the name of the secret that the line is a part of, or nothing.
func (s *Stream) belongsTo(text string, indent int) string {
	if s.open.kind == noSpan || text == "" {
		return ""
	}
	was := s.open
	if s.open.left--; s.open.left <= 0 {
		s.open = unfinished{}
	}
	switch was.kind {
	case pemSpan:
		if pemEnds.MatchString(text) {
			s.open = unfinished{}
		}
		return "private-key"
	case pemTail:
		if pemRest.MatchString(text) {
			if !pemBody.MatchString(text) {
				s.open = unfinished{}
			}
			return "private-key"
		}
	case block:
		if indent > was.indent {
			return "named-secret"
		}
	case next, columns:
		s.open = unfinished{}
		return "named-secret"
	}
	s.open = unfinished{}
	return ""
}

// noteOpening notes that the line begins what spans lines.
func (s *Stream) noteOpening(text string, indent int) {
	switch {
	case strings.Contains(text, "BEGIN") && pemBegins.MatchString(text) && !pemEnds.MatchString(text):
		s.open = unfinished{kind: pemSpan, left: hidden}
	case strings.LastIndexFunc(text, notBase64) < len(text)-60 && pemBody.MatchString(text):
		s.open = unfinished{kind: pemTail, left: hidden}
	case !namesSecret(text):
	case strings.ContainsAny(text[max(0, len(text)-3):], "|>") && opensBlock.MatchString(text):
		s.open = unfinished{kind: block, left: hidden, indent: indent}
	case opensTable.MatchString(text):
		s.open = unfinished{kind: columns, left: 1}
	case endsIn(text, `=:\sS`) && opensNext.MatchString(text) && !countName.MatchString(text):
		s.open = unfinished{kind: next, left: 1}
	}
}

// endsIn reports whether the last byte of a text is one of the characters.
func endsIn(text, characters string) bool {
	return text != "" && strings.IndexByte(characters, text[len(text)-1]) >= 0
}

func notBase64(r rune) bool { return r > unicode.MaxASCII || !inShort.has(byte(r)) }
