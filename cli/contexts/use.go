package contexts

import (
	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/contextfile"
	"github.com/forewarm/forewarm/cli/flags"
)

// newUseCommand is the command contexts use.
func newUseCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "use CONTEXT", Short: "Choose the context that later commands use", Args: flags.ExactArgs("CONTEXT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, f, err := loadSaved(a)
			if err != nil {
				return err
			}
			if _, ok := f.Contexts[args[0]]; !ok {
				return app.NoContext(args[0])
			}
			if a.Flags.DryRun {
				a.Say(cmd, "Dry run: nothing was changed. Later commands would use %q, %s.", args[0],
					f.Contexts[args[0]].Server)
				return nil
			}
			f.Current = args[0]
			return contextfile.Write(path, f)
		},
	}
}
