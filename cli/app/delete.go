package app

import (
	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/client"
)

// NewDeleteCommand is a command that ends something for ever: it says what goes, asks,
// and tells.
func NewDeleteCommand(a *App, noun, short, example string,
	what func(*cobra.Command, *client.Client, string) (id, goes string, err error),
	remove func(*cobra.Command, *client.Client, string) error,
) *cobra.Command {
	return &cobra.Command{
		Use: "delete " + noun, Aliases: []string{"rm"}, Short: short, Args: flags.ExactArgs(noun),
		Example: "  forewarm " + example,
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := a.NewClient()
			if err != nil {
				return err
			}
			id, goes, err := what(cmd, api, args[0])
			if err != nil {
				return err
			}
			if err := a.Confirm(cmd, "Delete "+goes); err != nil {
				return err
			}
			if err := remove(cmd, api, id); err != nil {
				return err
			}
			a.Say(cmd, "Deleted %s.", goes)
			return nil
		},
	}
}
