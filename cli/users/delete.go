package users

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

func newDeleteCommand(a *app.App) *cobra.Command {
	return app.NewDeleteCommand(a, "USER", "Delete a user and their keys; what they booked stays (admins)",
		"users delete ada@example.com --yes",
		func(cmd *cobra.Command, api *client.Client, ref string) (string, string, error) {
			u, err := findUser(a, cmd, api, ref)
			if err != nil {
				return "", "", err
			}
			var names []string
			for k, err := range api.Keys(cmd.Context(), client.Filter{}) {
				if err != nil {
					return "", "", err
				}
				if k.UserID == u.ID {
					names = append(names, k.Name)
				}
			}
			goes := fmt.Sprintf("user %s (%s of %s)", u.Email, u.Role, cmp.Or(u.OrganizationName, u.OrganizationID))
			if len(names) > 0 {
				goes += " and their keys " + strings.Join(names, ", ")
			}
			return u.ID, goes, nil
		},
		func(cmd *cobra.Command, api *client.Client, id string) error {
			return api.DeleteUser(a.WithIdempotencyKey(cmd.Context()), id)
		})
}

// findUser finds a user by id or e-mail address.
func findUser(a *app.App, cmd *cobra.Command, api *client.Client, ref string) (contract.User, error) {
	for u, err := range api.Users(cmd.Context(), client.Filter{}) {
		if err != nil || u.ID == ref || strings.EqualFold(u.Email, ref) {
			return u, err
		}
	}
	return contract.User{}, &exit.Error{Code: exit.NotFound, Message: fmt.Sprintf("There is no user %q.", ref),
		Next: []string{"forewarm users list"}}
}
