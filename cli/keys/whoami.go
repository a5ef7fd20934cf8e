package keys

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/caps"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/contract"
)

var whoamiView = output.View[contract.Whoami]{
	Name: func(x contract.Whoami) string { return cmp.Or(x.KeyName, x.KeyID) },
	Columns: []output.Column[contract.Whoami]{
		{Head: "KEY", Cell: func(x contract.Whoami) string { return cmp.Or(x.KeyName, x.KeyID) }},
		{Head: "KIND", Cell: func(x contract.Whoami) string { return x.Kind }},
		{Head: "ROLE", Cell: func(x contract.Whoami) string { return x.Role }},
		{Head: "USER", Cell: func(x contract.Whoami) string { return format.OrDash(cmp.Or(x.UserEmail, x.UserID)) }},
		{Head: "ORGANIZATION",
			Cell: func(
				x contract.Whoami) string {
				return format.OrDash(cmp.Or(x.OrganizationName, x.OrganizationID))
			}},
		{Head: "KEY'S CAPS", Cell: func(x contract.Whoami) string { return caps.Text(x.Caps) }},
		{Head: "OF THEM USED", Cell: func(x contract.Whoami) string { return capsUsed(x.Used) }},
		{Head: "USER'S CAPS", Cell: func(x contract.Whoami) string { return caps.Text(x.UserCaps) }},
		{Head: "OF THEM USED", Cell: func(x contract.Whoami) string { return capsUsed(x.UserUsed) }},
	},
}

// capsUsed is what is used of caps.
func capsUsed(u *contract.CapsUse) string {
	if u == nil {
		return "-"
	}
	return fmt.Sprintf("%s now and at most %d ahead, %s and %s GPU-hours today", format.Count(u.GPUs, "GPU"), u.Peak,
		format.Money(u.Spent), format.Hours(u.GPUHours))
}

// NewWhoamiCommand is the command whoami.
func NewWhoamiCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "whoami", Short: "Show whose key this is, what it may do, and how much of its caps is used", Args: flags.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			api, err := a.NewClient()
			if err != nil {
				return err
			}
			got, err := api.Whoami(cmd.Context())
			if err != nil {
				return err
			}
			return output.One(a, cmd, whoamiView, got)
		},
	}
}
