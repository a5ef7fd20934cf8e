package problem

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/internal/strictyaml"
)

// Explain finds the exit code of any error, and something to run next.
func Explain(cmd *cobra.Command, err error) *exit.Error {
	var (
		own     *exit.Error
		problem *client.Error
		config  *strictyaml.Error
		netErr  *net.OpError
		urlErr  *url.Error
	)
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &problem):
		return fromProblem(cmd, problem.Problem)
	case errors.As(err, &config):
		return &exit.Error{Code: exit.Usage, Message: err.Error(), Next: []string{cmd.CommandPath() + " --help"}}
	case cobraUsage(err):
		return &exit.Error{Code: exit.Usage, Message: rewordComplaint(err.Error()), Next: suggestCommands(cmd, err)}
	case errors.As(err, &netErr), errors.As(err, &urlErr), errors.Is(err, context.DeadlineExceeded):
		return fromUnreachable(err)
	default:
		return &exit.Error{Code: exit.Failed, Message: err.Error(), Err: err,
			Next: []string{cmd.CommandPath() + " --help"}}
	}
}

// cobraUsage recognises cobra's own errors about the command line, which have no
// type.
func cobraUsage(err error) bool {
	for _, begins := range []string{"unknown command", "unknown flag", "unknown shorthand", "required flag", "accepts ",
		"requires at least",
		"invalid argument", "flag needs an argument", "if any flags in the group", "at least one of the flags",
		"bad flag syntax"} {
		if strings.HasPrefix(err.Error(), begins) {
			return true
		}
	}
	return false
}

// suggestCommands are the commands that a wrong word may have meant.
func suggestCommands(cmd *cobra.Command, err error) []string {
	var next []string
	if _, rest, ok := strings.Cut(err.Error(), "Did you mean this?\n"); ok {
		for name := range strings.FieldsSeq(rest) {
			next = append(next, cmd.CommandPath()+" "+name)
		}
	}
	return append(next, cmd.CommandPath()+" --help")
}

// FlagError says what is wrong with a flag, and which one may have been meant.
func FlagError(cmd *cobra.Command, err error) error {
	if words := cmd.Flags().Args(); cmd.HasSubCommands() && len(words) > 0 {
		return flags.NoArgs(cmd, words) // the word before the flag is what is wrong
	}
	next := []string{cmd.CommandPath() + " --help"}
	if _, name, ok := strings.Cut(err.Error(), "unknown flag: --"); ok {
		if near, ok := nearestFlag(name, flags.Names(cmd)); ok {
			next = append([]string{cmd.CommandPath() + " --" + near}, next...)
		}
	}
	return &exit.Error{Code: exit.Usage, Message: rewordComplaint(err.Error()), Next: next}
}

// nearestFlag is the flag that a wrong one begins, or else the one that is spelled much like it: of short names nearly
// any is near, but typing errors seldom change the first letter.
func nearestFlag(wrong string, names []string) (string, bool) {
	var alike []string
	for _, name := range names {
		if len(wrong) > 1 && strings.HasPrefix(name, wrong) {
			return name, true
		}
		if wrong != "" && name[0] == wrong[0] {
			alike = append(alike, name)
		}
	}
	return strictyaml.Closest(wrong, alike)
}
