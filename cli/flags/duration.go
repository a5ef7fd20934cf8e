package flags

import (
	"errors"
	"strconv"
	"time"

	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/internal/strictyaml"
)

// Duration is a flag that reads 90m, 2h and 1d.
type Duration time.Duration

// Set reads the text form.
func (d *Duration) Set(text string) error {
	v, err := strictyaml.ParseDuration(text)
	if err == nil && v%time.Second != 0 {
		err = errors.New("must be whole seconds")
	}
	*d = Duration(v)
	return err
}

// String writes the shortest text form; none for zero.
func (d *Duration) String() string {
	if *d == 0 {
		return ""
	}
	return format.Duration(time.Duration(*d))
}

// Type names the flag's value in help texts.
func (*Duration) Type() string { return "duration" }

// Duration is the flag's value.
func (d *Duration) Duration() time.Duration { return time.Duration(*d) }

// Seconds is the flag's value in whole seconds.
func (d *Duration) Seconds() int64 { return int64(d.Duration() / time.Second) }

// Span is a duration that is not zero: nothing can be held for no time, and zero
// is what the server reads as not said.
type Span Duration

// Set reads the text form.
func (s *Span) Set(text string) error {
	if err := (*Duration)(s).Set(text); err != nil {
		return err
	}
	if *s == 0 {
		return errors.New("must be longer than 0s")
	}
	return nil
}

// String writes the shortest text form; none for zero.
func (s *Span) String() string { return (*Duration)(s).String() }

// Type names the flag's value in help texts.
func (*Span) Type() string { return "duration" }

// Duration is the flag's value.
func (s *Span) Duration() time.Duration { return time.Duration(*s) }

// Seconds is the flag's value in whole seconds.
func (s *Span) Seconds() int64 { return int64(s.Duration() / time.Second) }

// LongText renders a duration in its two largest units: 7d, 2517d1h, 3m20s.
func (s Span) LongText() string {
	d, day := time.Duration(s), 24*time.Hour
	if d < 2*day {
		return format.Duration(d)
	}
	text := strconv.Itoa(int(d/day)) + "d"
	if rest := (d % day).Truncate(time.Hour); rest > 0 {
		text += format.Duration(rest)
	}
	return text
}
