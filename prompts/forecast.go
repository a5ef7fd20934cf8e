package prompts

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The limits of what one prompt carries.
const (
	MaxLine      = 500 // runes of one line; the rest is cut
	MaxLines     = 200
	minDelimiter = 16
)

// Forecast is the data of the template "forecast". All of it but Lines and
// Mistake is made by the agent from numbers.
type Forecast struct {
	Now        string // RFC 3339, UTC, like all times here
	From, To   string // records outside are refused
	MaxGPUs    int
	MaxRecords int
	LargestJob int
	Reasons    []string
	Windows    []Window
	Delimiter  string   // at least 16 letters and digits, drawn at random for this call
	Lines      []string // redacted log lines; hostile
	Mistake    string   // why the last answer was refused; empty on the first try
}

// Window is what statistics expect in one window.
type Window struct {
	Start, End    string
	P10, P50, P90 int
	Any           float64
}

// Validate requires a delimiter that cannot be guessed and few enough lines.
func (f Forecast) Validate() error {
	if len(f.Delimiter) < minDelimiter {
		return fmt.Errorf("delimiter: %d characters, want at least %d", len(f.Delimiter), minDelimiter)
	}
	if strings.ContainsFunc(f.Delimiter, func(r rune) bool { return !letterOrDigit(r) }) {
		return fmt.Errorf("delimiter: only letters and digits are allowed")
	}
	if len(f.Lines) > MaxLines {
		return fmt.Errorf("lines: %d, at most %d are allowed", len(f.Lines), MaxLines)
	}
	return nil
}

func letterOrDigit(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}

// quoteText makes one line of untrusted text: invalid, control and invisible
// characters become spaces, so that nothing can start a new line or hide; the
// length is capped; and the delimiter is taken out until none is left, because
// taking one out can put another together.
func quoteText(delimiter, text string) string {
	var b strings.Builder
	n := 0
	for _, r := range text {
		if n++; n > MaxLine {
			break
		}
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			r = ' '
		}
		b.WriteRune(r)
	}
	line := b.String()
	for strings.Contains(line, delimiter) {
		line = strings.ReplaceAll(line, delimiter, "")
	}
	return line
}
