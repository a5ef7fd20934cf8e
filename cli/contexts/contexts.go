// Package contexts has the commands about saved servers and the keys for them.
package contexts

import (
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/contextfile"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/output"
)

// savedContext is a context as it is listed, without its key.
type savedContext struct {
	Name    string `json:"name"`
	Server  string `json:"server"`
	Current bool   `json:"current"`
}

var contextView = output.View[savedContext]{
	Name: func(x savedContext) string { return x.Name },
	Columns: []output.Column[savedContext]{
		{Head: "NAME", Cell: func(x savedContext) string { return x.Name }},
		{Head: "SERVER", Cell: func(x savedContext) string { return x.Server }},
		{Head: "CURRENT", Cell: func(x savedContext) string { return format.YesNo(x.Current) }},
	},
}

// NewCommand is the command contexts.
func NewCommand(a *app.App) *cobra.Command {
	ls := &cobra.Command{
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
	use := &cobra.Command{
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
	return app.NewGroupCommand("contexts", "See and choose saved servers", ls, use, newDeleteCommand(a))
}

func loadSaved(a *app.App) (string, contextfile.File, error) {
	path, err := contextfile.Path(a.Getenv)
	if err != nil {
		return "", contextfile.File{}, err
	}
	f, err := contextfile.Load(path)
	return path, f, err
}
