package flags

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/core/access"
	"github.com/forewarm/forewarm/internal/strictyaml"
)

// NoArgs refuses arguments, and for a group of commands says which one may have
// been meant.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if !cmd.HasSubCommands() {
		return oneTooMany(cmd, args[0])
	}
	e := exit.UsageErrorf(cmd.CommandPath()+" --help", "there is no command %q",
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

// ExactArgs wants exactly the arguments of these names.
func ExactArgs(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return exit.UsageErrorf(cmd.CommandPath()+" --help", "%s is missing", names[len(args)])
		case len(args) > len(names):
			return oneTooMany(cmd, args[len(names)])
		default:
			return nil
		}
	}
}

// AtLeastArgs wants the arguments of these names, and takes more of the last.
func AtLeastArgs(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		return ExactArgs(names...)(cmd, args[:min(len(args), len(names))])
	}
}

// OneBeforeDash wants one argument, of this name, and takes what follows -- as a command.
func OneBeforeDash(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if at := cmd.ArgsLenAtDash(); at >= 0 {
			args = args[:at]
		}
		if len(args) > 1 {
			return exit.UsageErrorf(fmt.Sprintf("%s %s -- %s", cmd.CommandPath(), Quote(args[0]), access.Quote(args[1:])),
				"a command stands behind --")
		}
		return ExactArgs(name)(cmd, args)
	}
}

// oneTooMany refuses an argument. A flag that is true or false takes its value with =
// alone, so that "--paused true" is a flag and an argument.
func oneTooMany(cmd *cobra.Command, arg string) error {
	e := exit.UsageErrorf(cmd.CommandPath()+" --help", "%q is one argument too many", arg)
	if arg != "true" && arg != "false" {
		return e
	}
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if f.Changed && f.Value.Type() == "bool" {
			e.Next = append([]string{CommandWith(cmd, "--"+f.Name+"="+arg)}, e.Next...)
		}
	})
	return e
}
