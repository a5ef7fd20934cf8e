package strictyaml

import (
	"errors"
	"math"
	"regexp"
	"strconv"
	"time"

	yaml "go.yaml.in/yaml/v3"
)

// Duration is a time span as people write it: 90m, 2h, 1d, 1d12h.
type Duration time.Duration

// UnmarshalYAML reads the text form.
func (d *Duration) UnmarshalYAML(n *yaml.Node) error {
	v, err := ParseDuration(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil {
		return noDuration(n, "the value")
	}
	*d = Duration(v)
	return nil
}

func noDuration(n *yaml.Node, at string) *Error {
	return &Error{Line: n.Line, Message: at + " is not a duration",
		Fix: "write a number with its unit, such as 90m, 2h or 1d"}
}

// Std returns the span as a time.Duration.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// ErrDuration says that a text is not a duration.
var ErrDuration = errors.New("want a duration such as 90m, 2h or 1d")

var days = regexp.MustCompile(`^(\d{1,6})d`)

// ParseDuration reads a duration of Go's form with days in front, a day being 24
// hours. It refuses negative ones and numbers without a unit, but for 0.
func ParseDuration(text string) (time.Duration, error) {
	var whole time.Duration
	rest := text
	if m := days.FindStringSubmatch(text); m != nil {
		n, _ := strconv.Atoi(m[1])
		if n > math.MaxInt64/int(24*time.Hour) {
			return 0, ErrDuration
		}
		whole, rest = time.Duration(n)*24*time.Hour, text[len(m[0]):]
		if rest == "" {
			return whole, nil
		}
	}
	part, err := time.ParseDuration(rest)
	if err != nil || part < 0 || rest[0] == '+' || rest[0] == '-' || whole > math.MaxInt64-part {
		return 0, ErrDuration
	}
	return whole + part, nil
}
