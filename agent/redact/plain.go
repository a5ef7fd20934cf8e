package redact

import (
	"regexp"
	"strings"
	"unicode"
)

// weakSpace stands for the unusual spaces of Unicode. It divides words for the
// reader but is taken out of the view that joins what was split.
const weakSpace = "\u00a0"

// ansi matches terminal sequences: CSI, OSC with its end, other strings with
// theirs, and two-character escapes; also the one-character forms of C1.
var ansi = regexp.MustCompile(`(?:\x1b\[|\x{9b})[0-?]*[ -/]*[@-~]` +
	`|(?:\x1b[\]PX^_]|[\x{9d}\x{90}\x{98}\x{9e}\x{9f}])[^\x07\x1b\x{9c}]*(?:\x07|\x1b\\|\x{9c})` +
	`|\x1b[ -/]*[0-~]`)

// terminal are the bytes that begin terminal sequences and the characters of these: two of ASCII,
// and what C1 begins with.
var terminal = setOf("\x07\x1b\xc2")

// controls are the characters that begin and end terminal sequences.
var controls = regexp.MustCompile(`[\x07\x1b\x{80}-\x{9f}]+`)

// toPlainText removes what is not seen and replaces what looks like something else. It
// leaves terminal sequences, because what a terminal would take for the end of
// one may be the start of a secret: both readings have to be looked at.
func toPlainText(line string) string {
	if isASCII(line) {
		return line
	}
	return strings.Map(keepTerminal, strings.ToValidUTF8(line, ""))
}

// keepTerminal is plainRune that leaves what terminal sequences begin and end with.
func keepTerminal(r rune) rune {
	if r == 0x07 || r == 0x1b || r >= 0x80 && r <= 0x9f {
		return r
	}
	return plainRune(r)
}

// finishLine removes the terminal sequences, and makes all spaces alike.
func finishLine(text string) string { return strings.TrimSpace(tidyPiece(text)) }

// tidyPiece is finish for a piece of a line, whose spaces at its ends count.
func tidyPiece(text string) string {
	if isASCII(text) {
		return text
	}
	text = controls.ReplaceAllString(ansi.ReplaceAllString(text, ""), "")
	return strings.ReplaceAll(text, weakSpace, " ")
}

// plainRune returns the character to read in place of r, or -1 for none.
func plainRune(r rune) rune {
	switch {
	case r == '\t' || r == '\n' || r == '\r':
		return ' '
	case r < 0x20 || r >= 0x7f && r < 0xa0:
		return -1
	case r < 0x7f:
		return r
	case isInvisible(r):
		return -1
	case unicode.In(r, unicode.Zs, unicode.Zl, unicode.Zp), r == '\u2800':
		return []rune(weakSpace)[0]
	case r >= 0xff01 && r <= 0xff5e: // Full width.
		return r - 0xff01 + '!'
	case r >= 0x1d400 && r <= 0x1d6a3: // Mathematical letters: alphabets of 26 and 26.
		return mathLetter(int(r-0x1d400) % 52)
	case r >= 0x1d7ce && r <= 0x1d7ff: // Mathematical digits.
		return '0' + (r-0x1d7ce)%10
	}
	if twin, ok := twins[r]; ok {
		return twin
	}
	return r
}

func mathLetter(n int) rune {
	if n < 26 {
		return 'A' + rune(n)
	}
	return 'a' + rune(n-26)
}

// isInvisible reports whether r has no width: format characters, combining marks,
// variation selectors and the fillers of Hangul.
func isInvisible(r rune) bool {
	switch {
	case unicode.Is(unicode.Cf, r), unicode.Is(unicode.Co, r), r >= 0xe0000 && r <= 0xe0fff:
		return true
	case r >= 0x300 && r <= 0x36f, r >= 0xfe00 && r <= 0xfe0f, r >= 0x20d0 && r <= 0x20ff:
		return true
	}
	return r == 0x115f || r == 0x1160 || r == 0x17b4 || r == 0x17b5 || r == 0x3164 || r == 0xffa0
}

// twins maps quotes, dashes and letters of other scripts to the ASCII character
// that they look like.
var twins = map[rune]rune{
	'‘': '\'', '’': '\'', '‚': '\'', '‛': '\'', '′': '\'', '“': '"', '”': '"', '„': '"', '‟': '"', '″': '"',
	'‐': '-', '‑': '-', '‒': '-', '–': '-', '—': '-', '―': '-', '−': '-', '﹣': '-',
	'∶': ':', '։': ':', '⁄': '/', '∕': '/', '․': '.', '﹒': '.', '﹫': '@', '＿': '_',
	'А': 'A', 'В': 'B', 'Е': 'E', 'К': 'K', 'М': 'M', 'Н': 'H', 'О': 'O', 'Р': 'P', 'С': 'C', 'Т': 'T', 'У': 'Y',
	'Х': 'X', 'Ѕ': 'S', 'І': 'I', 'Ј': 'J', 'а': 'a', 'е': 'e', 'к': 'k', 'о': 'o', 'р': 'p', 'с': 'c', 'у': 'y',
	'х': 'x', 'ѕ': 's', 'і': 'i', 'ј': 'j', 'ԁ': 'd', 'ԛ': 'q', 'ԝ': 'w', 'һ': 'h',
	'Α': 'A', 'Β': 'B', 'Ε': 'E', 'Ζ': 'Z', 'Η': 'H', 'Ι': 'I', 'Κ': 'K', 'Μ': 'M', 'Ν': 'N', 'Ο': 'O', 'Ρ': 'P',
	'Τ': 'T', 'Υ': 'Y', 'Χ': 'X', 'ο': 'o', 'ν': 'v', 'ı': 'i',
	'ſ': 's', '\u212a': 'K', // They fold to ASCII in patterns that ignore case.
}
