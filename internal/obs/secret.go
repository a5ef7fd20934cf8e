package obs

import (
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
)

// redacted is what every way of printing a Secret gives, also an empty one.
const redacted = "***"

// Secret is a text that must not be printed. Every formatting, encoding and
// logging of it gives "***"; only Reveal gives the text. The zero value is an
// empty secret. It can be read from JSON, YAML and text, but not written back.
//
// Two secrets are compared with Equal, never with ==.
type Secret struct {
	// A pointer, because fmt cannot call the methods of unexported fields: of a
	// struct that holds a Secret in one, it would print the text, while it prints
	// a pointer below the top level as an address.
	text *string
}

// NewSecret returns a Secret that holds text.
func NewSecret(text string) Secret { return Secret{&text} }

// Reveal returns the text. Calls of it are the places to look at in a review.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// IsZero reports whether the text is empty.
func (s Secret) IsZero() bool { return s.Reveal() == "" }

// Equal compares the texts in a time that does not depend on where they differ.
func (s Secret) Equal(other Secret) bool {
	return subtle.ConstantTimeCompare([]byte(s.Reveal()), []byte(other.Reveal())) == 1
}

// String returns "***".
func (Secret) String() string { return redacted }

// GoString returns "***".
func (Secret) GoString() string { return redacted }

// Format writes "***" for every verb and flag.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// MarshalJSON returns "***" as a JSON string.
func (Secret) MarshalJSON() ([]byte, error) { return json.Marshal(redacted) }

// MarshalText returns "***".
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// UnmarshalText takes text as the secret, for configuration files and flags.
func (s *Secret) UnmarshalText(text []byte) error {
	*s = NewSecret(string(text))
	return nil
}

// LogValue returns "***".
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }
