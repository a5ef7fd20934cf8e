package contexts

import (
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/output"
)

// newListCommand is the command contexts list.
func newListCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List saved contexts", Args: flags.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, f, err := loadSaved(a)
			if err != nil {
				return err
			}
			var all []savedContext
			for _, n := range slices.Sorted(maps.Keys(f.Contexts)) {
				all = append(all, savedContext{Name: n, Server: f.Contexts[n].Server, Current: n == f.Current})
			}
			return output.List(a, cmd, contextView, all)
		},
	}
}
