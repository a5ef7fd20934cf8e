package contexts

import (
	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/contextfile"
	"github.com/forewarm/forewarm/cli/flags"
)

// NewDeleteCommand forgets a server and its key, which the server goes on knowing.
func newDeleteCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "delete CONTEXT", Short: "Forget a saved server and its key", Args: flags.ExactArgs("CONTEXT"),
		Long: "Forgets a saved server and the key for it. The key itself keeps working until it expires or is revoked.",
		RunE: func(cmd *cobra.Command, args []string) error {
			path, f, err := loadSaved(a)
			if err != nil {
				return err
			}
			name := args[0]
			forgotten, ok := f.Contexts[name]
			if !ok {
				return app.NoContext(name)
			}
			if a.Flags.DryRun {
				a.Say(cmd, "Dry run: nothing was changed. %q, %s, and its key would be forgotten.", name,
					forgotten.Server)
				return nil
			}
			delete(f.Contexts, name)
			if f.Current == name {
				f.Current = ""
			}
			if err := contextfile.Write(path, f); err != nil {
				return err
			}
			a.Say(cmd, "%q, %s, and its key are forgotten; the key works until it expires or is revoked.", name,
				forgotten.Server)
			return nil
		},
	}
}
