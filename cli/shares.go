package cli

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/contract"
)

var shareView = view[contract.Share]{
	name: func(x contract.Share) string { return x.OrganizationID },
	columns: []column[contract.Share]{
		{head: "ORGANIZATION",
			cell: func(x contract.Share) string { return firstNonEmpty(x.OrganizationName, x.OrganizationID) }},
		{head: "SHARE", right: true, cell: func(x contract.Share) string { return fmt.Sprintf("%.4f", x.Share) }},
		{head: "WEIGHT", right: true, cell: func(x contract.Share) string { return strconv.Itoa(x.Weight) }},
		{head: "GPU-HOURS", right: true, cell: func(x contract.Share) string { return formatHours(x.GPUHours) }},
		{head: "IDLE GPU-HOURS", right: true, cell: func(x contract.Share) string { return formatHours(x.IdleGPUHours) }},
		{head: "IDLE FACTOR", right: true,
			cell: func(x contract.Share) string { return fmt.Sprintf("%.2f", x.IdleFactor) }},
	},
}

func (a *app) newSharesCommand() *cobra.Command {
	return &cobra.Command{
		Use: "shares POOL", Short: "See fair shares of a pool: who has less is served first", Args: exactArgs("POOL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := a.newClient()
			if err != nil {
				return err
			}
			got, err := api.Shares(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return showList(a, cmd, shareView, got.Items)
		},
	}
}
