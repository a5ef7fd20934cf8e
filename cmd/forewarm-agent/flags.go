package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/forewarm/forewarm/internal/strictyaml"
)

// span is a flag for a time as the configuration reads it, in days too.
type span time.Duration

// String is the text form, without the zeros that Go adds: 5m, 1h30m, 90s.
func (s *span) String() string {
	text := time.Duration(*s).String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// Set reads the text form.
func (s *span) Set(text string) error {
	d, err := strictyaml.ParseDuration(text)
	if err == nil {
		*s = span(d)
	}
	return err
}

// Type is what help calls it.
func (s *span) Type() string { return "duration" }

// wants says, by the type of a flag, what it takes.
var wants = map[string]string{
	"duration": "a number with its unit, such as 90s, 5m or 1d", "float64": "a number, such as 2.10",
	"int":  "a whole number, such as 30",
	"bool": "true or false",
}

// flagError says what a flag takes whose value cannot be read.
func flagError(err error) error {
	invalid, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err
	}
	flag, value := invalid.GetFlag(), invalid.GetValue()
	want, ok := wants[flag.Value.Type()]
	if !ok {
		return err
	}
	fix := ""
	if flag.Value.Type() == "duration" && value != "" && strings.Trim(value, "0123456789") == "" {
		fix = fmt.Sprintf("; for minutes, write %sm", value)
	}
	return fmt.Errorf("--%s %s is not %s%s", flag.Name, value, want, fix)
}
