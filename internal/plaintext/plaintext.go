// Package plaintext knows the characters that plain text does not have: those
// that control a terminal or a database's text, those that make a line read in
// another order than it is stored, and those that nobody sees.
package plaintext

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Find returns the first character of text that plain text does not have, in
// the form that Escape gives it, or "": control characters (C0, C1 and DEL),
// separators of lines and paragraphs, controls of the writing direction, and what
// is shown as nothing: format characters, those that Unicode has ignored by
// default, and blanks that are no spaces. What is not UTF-8 counts too.
func Find(text string) string {
	for i, r := range text {
		if r < unicode.MaxASCII && r >= ' ' {
			continue
		}
		if isHidden(r) || isBroken(text, i, r) {
			return escapeRune(text, i, r)
		}
	}
	return ""
}

// Escape returns text with what Find finds written out, such as \u202e or \x1b,
// so that it shows and does nothing.
func Escape(text string) string { return escapeText(text, "") }

// EscapeLines is Escape for text of several lines: line feeds and tabs stay.
func EscapeLines(text string) string { return escapeText(text, "\n\t") }

func escapeText(text, keep string) string {
	if Find(text) == "" {
		return text
	}
	var out strings.Builder
	for i, r := range text {
		if isBroken(text, i, r) || isHidden(r) && !strings.ContainsRune(keep, r) {
			out.WriteString(escapeRune(text, i, r))
			continue
		}
		out.WriteRune(r)
	}
	return out.String()
}

func isHidden(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp) || Invisible(r)
}

// Invisible reports whether a rune is shown as nothing, or only changes how others
// are shown: Unicode's Default_Ignorable_Code_Point with all format characters,
// and the blank of braille.
func Invisible(r rune) bool {
	return unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) &&
		!unicode.Is(unicode.Prepended_Concatenation_Mark, r) || r == '\u2800'
}

func isBroken(text string, i int, r rune) bool {
	if r != utf8.RuneError {
		return false
	}
	_, size := utf8.DecodeRuneInString(text[i:])
	return size == 1
}

func escapeRune(text string, i int, r rune) string {
	switch {
	case isBroken(text, i, r):
		return fmt.Sprintf(`\x%02x`, text[i])
	case r < 0x80:
		return fmt.Sprintf(`\x%02x`, r)
	case r > 0xffff:
		return fmt.Sprintf(`\U%08x`, r)
	default:
		return fmt.Sprintf(`\u%04x`, r)
	}
}
