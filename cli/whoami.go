package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/contract"
)

var whoamiView = view[contract.Whoami]{
	name: func(x contract.Whoami) string { return firstNonEmpty(x.KeyName, x.KeyID) },
	columns: []column[contract.Whoami]{
		{head: "KEY", cell: func(x contract.Whoami) string { return firstNonEmpty(x.KeyName, x.KeyID) }},
		{head: "KIND", cell: func(x contract.Whoami) string { return x.Kind }},
		{head: "ROLE", cell: func(x contract.Whoami) string { return x.Role }},
		{head: "USER", cell: func(x contract.Whoami) string { return orDash(firstNonEmpty(x.UserEmail, x.UserID)) }},
		{head: "ORGANIZATION",
			cell: func(x contract.Whoami) string { return orDash(firstNonEmpty(x.OrganizationName, x.OrganizationID)) }},
		{head: "KEY'S CAPS", cell: func(x contract.Whoami) string { return capsText(x.Caps) }},
		{head: "OF THEM USED", cell: func(x contract.Whoami) string { return capsUsed(x.Used) }},
		{head: "USER'S CAPS", cell: func(x contract.Whoami) string { return capsText(x.UserCaps) }},
		{head: "OF THEM USED", cell: func(x contract.Whoami) string { return capsUsed(x.UserUsed) }},
	},
}

// capsUsed is what is used of caps.
func capsUsed(u *contract.CapsUse) string {
	if u == nil {
		return "-"
	}
	return fmt.Sprintf("%s now and at most %d ahead, %s and %s GPU-hours today", formatCount(u.GPUs, "GPU"), u.Peak,
		formatMoney(u.Spent), formatHours(u.GPUHours))
}

func (a *app) newWhoamiCommand() *cobra.Command {
	return &cobra.Command{
		Use: "whoami", Short: "Show whose key this is, what it may, and what is used of its caps", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			api, err := a.newClient()
			if err != nil {
				return err
			}
			got, err := api.Whoami(cmd.Context())
			if err != nil {
				return err
			}
			return showOne(a, cmd, whoamiView, got)
		},
	}
}
