package organizations

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/client"
)

func newDeleteCommand(a *app.App) *cobra.Command {
	return app.NewDeleteCommand(a, "ORGANIZATION",
		"Delete a tenant that holds nothing, with its people and keys; its history stays (operators)",
		"orgs delete beta --yes",
		func(cmd *cobra.Command, api *client.Client, ref string) (string, string, error) {
			o, err := api.Organization(cmd.Context(), ref)
			if err != nil {
				return "", "", err
			}
			people, keys := 0, 0
			for u, err := range api.Users(cmd.Context(), client.Filter{Organization: o.ID}) {
				if err != nil {
					return "", "", err
				}
				if u.OrganizationID == o.ID {
					people++
				}
			}
			for k, err := range api.Keys(cmd.Context(), client.Filter{Organization: o.ID}) {
				if err != nil {
					return "", "", err
				}
				if k.OrganizationID == o.ID {
					keys++
				}
			}
			return o.ID, fmt.Sprintf("organization %s with its %s and %s", o.Name, format.Count(people, "user"),
				format.Count(keys, "key")), nil
		},
		func(cmd *cobra.Command, api *client.Client, id string) error {
			return api.DeleteOrganization(a.WithIdempotencyKey(cmd.Context()), id)
		})
}
