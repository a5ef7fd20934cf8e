package flags

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/internal/strictyaml"
)

// NoArgs refuses arguments, and for a group of commands says which one may have
// been meant.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if !cmd.HasSubCommands() {
		return exit.UsageErrorf(cmd.CommandPath()+" --help", "%q is one argument too many", args[0])
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
			return exit.UsageErrorf(cmd.CommandPath()+" --help", "%q is one argument too many", args[len(names)])
		default:
			return nil
		}
	}
}
