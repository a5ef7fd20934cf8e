// Package shares shows the fair shares of a pool.
package shares

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/contract"
)

var shareView = output.View[contract.Share]{
	Name: func(x contract.Share) string { return x.OrganizationID },
	Columns: []output.Column[contract.Share]{
		{Head: "ORGANIZATION",
			Cell: func(x contract.Share) string { return cmp.Or(x.OrganizationName, x.OrganizationID) }},
		{Head: "SHARE", Right: true, Cell: func(x contract.Share) string { return fmt.Sprintf("%.4f", x.Share) }},
		{Head: "WEIGHT", Right: true, Cell: func(x contract.Share) string { return strconv.Itoa(x.Weight) }},
		{Head: "GPU-HOURS", Right: true, Cell: func(x contract.Share) string { return format.Hours(x.GPUHours) }},
		{Head: "IDLE GPU-HOURS", Right: true,
			Cell: func(x contract.Share) string { return format.Hours(x.IdleGPUHours) }},
		{Head: "IDLE FACTOR", Right: true,
			Cell: func(x contract.Share) string { return fmt.Sprintf("%.2f", x.IdleFactor) }},
	},
}

// NewCommand is the command shares.
func NewCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "shares POOL", Short: "See the fair shares of a pool: the smallest share is served first",
		Args: flags.ExactArgs("POOL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := a.NewClient()
			if err != nil {
				return err
			}
			got, err := api.Shares(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return output.List(a, cmd, shareView, got.Items)
		},
	}
}
