package cli

import (
	"runtime"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/contract"
)

func newVersionCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Show the version of this program", Args: flags.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return output.One(a, cmd, output.View[contract.Build]{
				Name: func(b contract.Build) string { return b.Version },
				Columns: []output.Column[contract.Build]{
					{Head: "VERSION", Cell: func(b contract.Build) string { return b.Version }},
					{Head: "CONTRACT", Cell: func(b contract.Build) string { return b.Contract }},
					{Head: "GO", Cell: func(b contract.Build) string { return b.GoVersion }},
				},
			}, contract.Build{Version: a.Version, Contract: contract.Version, GoVersion: runtime.Version()})
		},
	}
}
