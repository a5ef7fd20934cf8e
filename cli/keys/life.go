package keys

import (
	"fmt"

	"github.com/forewarm/forewarm/cli/flags"
)

// keyLife is how long a key works: a time, or never an end.
type keyLife struct {
	flags.Span
	never bool
}

// Set reads a duration, or the word never.
func (l *keyLife) Set(text string) error {
	if l.never = text == "never"; l.never {
		l.Span = 0
		return nil
	}
	if err := l.Span.Set(text); err != nil {
		return fmt.Errorf("%w, or never", err)
	}
	return nil
}

// String writes what was set; nothing when nothing was.
func (l *keyLife) String() string {
	if l.never {
		return "never"
	}
	return l.Span.String()
}
