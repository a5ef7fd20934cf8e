package problem

import (
	"regexp"
	"strings"
)

// complaints are what cobra and pflag say of a command line, and how people say
// it.
var complaints = []struct {
	is  *regexp.Regexp
	say string
}{
	{flagComplaint(`strconv\.Parse(?:Int|Uint): .*: invalid syntax`), `$2 "$1" is not a whole number`},
	{flagComplaint(`strconv\.Parse\w+: .*: value out of range`), `$2 "$1" is too large`},
	{flagComplaint(`strconv\.ParseFloat: .*`), `$2 "$1" is not a number`},
	{flagComplaint(`strconv\.ParseBool: .*`), `$2 "$1" is neither true nor false`},
	{flagComplaint(`want (.*)`), `$2 "$1" cannot be read: want $3`},
	{flagComplaint(`(must .*)`), `$2 $1 $3`},
	{regexp.MustCompile(`^unknown flag: (--\S+)$`), `there is no flag $1`},
	{regexp.MustCompile(`^unknown shorthand flag: '(.)' in -\S+$`), `there is no flag -$1`},
	{regexp.MustCompile(`^flag needs an argument: '(.)' in -\S+$`), `-$1 needs a value`},
	{regexp.MustCompile(`^flag needs an argument: (--\S+)$`), `$1 needs a value`},
	{regexp.MustCompile(`^if any flags in the group \[(\S+) (\S+)\] are set none of the others can be; .*$`),
		`--$1 and --$2 cannot be given together`},
}

func flagComplaint(rule string) *regexp.Regexp {
	return regexp.MustCompile(`^invalid argument "(.*)" for "(?:-\w, )?(--[\w-]+)" flag: ` + rule + `$`)
}

// rewordComplaint says a complaint of cobra in plain words, without its suggestions, which
// become commands to run.
func rewordComplaint(message string) string {
	message, _, _ = strings.Cut(message, "\n\nDid you mean this?")
	for _, c := range complaints {
		if c.is.MatchString(message) {
			return c.is.ReplaceAllString(message, c.say)
		}
	}
	return message
}
