package format

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/forewarm/forewarm/internal/plaintext"
)

// SteersTerminal reports whether a terminal acts on a rune instead of showing it:
// controls, marks of writing direction and others without a form of their own,
// also those that look like nothing.
func SteersTerminal(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) || plaintext.Invisible(r)
}

// Plain keeps what comes from elsewhere from steering the terminal: what would
// is written out, and lines become one.
func Plain(s string) string {
	return escapeControls(strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || r == '\r' {
			return ' '
		}
		return r
	}, s), readableEscape)
}

// PlainLines is plain for a text that has lines.
func PlainLines(s string) string { return escapeControls(s, readableEscape) }

// EscapeJSON does the same to JSON, which stays the same value: what steers can
// only be inside of its strings.
func EscapeJSON(s string) string {
	return escapeControls(s, func(r rune) string {
		if r1, r2 := utf16.EncodeRune(r); r1 != unicode.ReplacementChar {
			return fmt.Sprintf(`\u%04x\u%04x`, r1, r2)
		}
		return fmt.Sprintf(`\u%04x`, r)
	})
}

// EscapeYAML does the same to YAML in which what steers is in double quotes.
func EscapeYAML(s string) string { return escapeControls(s, readableEscape) }

func readableEscape(r rune) string {
	if r > 0xffff {
		return fmt.Sprintf(`\U%08x`, r)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

func escapeControls(s string, as func(rune) string) string {
	if strings.IndexFunc(s, SteersTerminal) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if SteersTerminal(r) && r != '\n' && r != '\t' {
			b.WriteString(as(r))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
