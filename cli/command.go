package cli

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/forewarm/forewarm/internal/strictyaml"
)

// duration is a flag that reads 90m, 2h and 1d.
type duration time.Duration

// Set reads the text form.
func (d *duration) Set(text string) error {
	v, err := strictyaml.ParseDuration(text)
	if err == nil && v%time.Second != 0 {
		err = errors.New("must be whole seconds")
	}
	*d = duration(v)
	return err
}

// String writes the shortest text form; none for zero.
func (d *duration) String() string {
	if *d == 0 {
		return ""
	}
	return formatDuration(time.Duration(*d))
}

// Type names the flag's value in help texts.
func (*duration) Type() string { return "duration" }

func (d *duration) std() time.Duration { return time.Duration(*d) }
func (d *duration) seconds() int64     { return int64(d.std() / time.Second) }

// span is a duration that is not zero: nothing can be held for no time, and zero
// is what the server reads as not said.
type span duration

// Set reads the text form.
func (s *span) Set(text string) error {
	if err := (*duration)(s).Set(text); err != nil {
		return err
	}
	if *s == 0 {
		return errors.New("must be longer than 0s")
	}
	return nil
}

// String writes the shortest text form; none for zero.
func (s *span) String() string { return (*duration)(s).String() }

// Type names the flag's value in help texts.
func (*span) Type() string { return "duration" }

func (s *span) std() time.Duration { return time.Duration(*s) }
func (s *span) seconds() int64     { return int64(s.std() / time.Second) }

func showHelp(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// noArgs refuses arguments, and for a group of commands says which one may have
// been meant.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if !cmd.HasSubCommands() {
		return usageErrorf(cmd.CommandPath()+" --help", "%q is one argument too many", args[0])
	}
	e := usageErrorf(cmd.CommandPath()+" --help", "there is no command %q",
		strings.TrimPrefix(cmd.CommandPath()+" "+args[0], "forewarm "))
	var names []string
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	if near, ok := strictyaml.Closest(args[0], names); ok {
		e.Next = append([]string{cmd.CommandPath() + " " + near}, e.Next...)
	}
	return e
}

// exactArgs wants exactly the arguments of these names.
func exactArgs(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return usageErrorf(cmd.CommandPath()+" --help", "%s is missing", names[len(args)])
		case len(args) > len(names):
			return usageErrorf(cmd.CommandPath()+" --help", "%q is one argument too many", args[len(names)])
		default:
			return nil
		}
	}
}

// newGroupCommand is a command that holds others. Alone it does what its list does, if it
// has one.
func newGroupCommand(use, short string, commands ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: noArgs, RunE: showHelp}
	if first := commands[0]; first.Name() == "list" {
		c.RunE = first.RunE
		c.Flags().AddFlagSet(first.Flags())
	}
	c.AddCommand(commands...)
	return c
}

// countable are the commands of a noun, which are found under both of its numbers.
var countable = map[string][]string{"allocations": {"allocation"}, "reservations": {"reservation"},
	"schedules": {"schedule"},
	"pools":     {"pool"}, "shares": {"share"}, "nodes": {"node"}, "gpus": {"gpu"}, "events": {"event"},
	"decisions": {"decision"},
	"forecasts": {"forecast"}, "costs": {"cost"}, "contexts": {"context"}, "plan": {"plans"}, "key": {"keys"},
	"quota": {"quotas"},
	"orgs":  {"org", "organization", "organizations"}, "users": {"user"}, "report": {"reports"}}

func flagNames(cmd *cobra.Command) []string {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return names
}

// needFlags fails unless every flag was given, and names all that were not.
func needFlags(cmd *cobra.Command, flags ...string) error {
	var missing []string
	for _, name := range flags {
		if !cmd.Flags().Changed(name) {
			missing = append(missing, "--"+name)
		}
	}
	switch n := len(missing); n {
	case 0:
		return nil
	case 1:
		return usageErrorf(cmd.CommandPath()+" --help", "%s is missing", missing[0])
	default:
		return usageErrorf(cmd.CommandPath()+" --help", "%s and %s are missing", strings.Join(missing[:n-1], ", "),
			missing[n-1])
	}
}

// say tells the person something that is not data.
func (a *app) say(cmd *cobra.Command, format string, args ...any) {
	if !a.flags.quiet {
		_, _ = fmt.Fprintln(cmd.ErrOrStderr(), plainLines(fmt.Sprintf(format, args...)))
	}
}

// confirm asks before something is destroyed. Without a terminal it fails with
// the flag to add.
func (a *app) confirm(cmd *cobra.Command, args []string, question string) error {
	a.question = question
	if a.flags.yes || a.flags.dryRun {
		return nil
	}
	again := strings.Join(append([]string{cmd.CommandPath()}, append(args, "--yes")...), " ")
	if !a.terminal(cmd.InOrStdin()) || !a.terminal(cmd.ErrOrStderr()) {
		return &Error{Exit: ExitUsage, Message: question + ": this needs a yes, and there is no terminal to ask at",
			Next: []string{again}}
	}
	_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "%s? [y/N] ", plainText(question))
	answer, err := readLine(cmd.Context(), cmd.InOrStdin())
	if cmd.Context().Err() != nil {
		_, _ = fmt.Fprintln(cmd.ErrOrStderr())
		return &Error{Exit: ExitInterrupt, Message: "interrupted: nothing was changed", Next: []string{again}, Err: err}
	}
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer == "y" || answer == "yes" {
		return nil
	}
	return &Error{Exit: ExitFailed, Message: "nothing was changed", Next: []string{again}}
}
