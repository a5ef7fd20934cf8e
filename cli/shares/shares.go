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

// userShare is a user's share with whose it is a part of.
type userShare struct {
	OrganizationID   string `json:"organization_id"`
	OrganizationName string `json:"organization_name,omitempty"`
	contract.UserShare
}

var userView = output.View[userShare]{
	Name: func(x userShare) string { return x.UserID },
	Columns: []output.Column[userShare]{
		{Head: "ORGANIZATION", Cell: func(x userShare) string { return cmp.Or(x.OrganizationName, x.OrganizationID) }},
		{Head: "USER", Cell: func(x userShare) string { return cmp.Or(x.UserEmail, x.UserID, "(keys of nobody)") }},
		{Head: "SHARE", Right: true, Cell: func(x userShare) string { return fmt.Sprintf("%.4f", x.Share) }},
		{Head: "GPU-HOURS", Right: true, Cell: func(x userShare) string { return format.Hours(x.GPUHours) }},
	},
}

// usersOf lists the users of all shares.
func usersOf(all []contract.Share) []userShare {
	users := []userShare{}
	for _, s := range all {
		for _, u := range s.Users {
			users = append(users, userShare{s.OrganizationID, s.OrganizationName, u})
		}
	}
	return users
}

// NewCommand is the command shares.
func NewCommand(a *app.App) *cobra.Command {
	var users bool
	cmd := &cobra.Command{
		Use: "shares POOL", Short: "See the fair shares of a pool: the smallest share is served first",
		Long: "See the fair shares of a pool: the smallest share is served first. Users of an organization are compared\n" +
			"with each other: who had less goes first. --users shows what each has had.",
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
			if users {
				return output.List(a, cmd, userView, usersOf(got.Items))
			}
			return output.List(a, cmd, shareView, got.Items)
		},
	}
	cmd.Flags().BoolVar(&users, "users", false, "show users instead of organizations")
	return cmd
}
