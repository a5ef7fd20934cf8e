package app

import (
	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/flags"
)

// ShowHelp shows the help of a command that does nothing itself.
func ShowHelp(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// NewGroupCommand is a command that holds others. Alone it does what its list does, if it
// has one.
func NewGroupCommand(use, short string, commands ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: flags.NoArgs, RunE: ShowHelp}
	if first := commands[0]; first.Name() == "list" {
		c.RunE = first.RunE
		c.Flags().AddFlagSet(first.Flags())
	}
	c.AddCommand(commands...)
	return c
}
