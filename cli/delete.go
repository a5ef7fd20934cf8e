package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// newDeleteCommand is a command that ends something for ever: it says what goes, asks,
// and tells.
func (a *app) newDeleteCommand(noun, short, example string,
	what func(*cobra.Command, *client.Client, string) (id, goes string, err error),
	remove func(*cobra.Command, *client.Client, string) error,
) *cobra.Command {
	return &cobra.Command{
		Use: "delete " + noun, Aliases: []string{"rm"}, Short: short, Args: exactArgs(noun),
		Example: "  forewarm " + example,
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := a.newClient()
			if err != nil {
				return err
			}
			id, goes, err := what(cmd, api, args[0])
			if err != nil {
				return err
			}
			if err := a.confirm(cmd, args, "Delete "+goes); err != nil {
				return err
			}
			if err := remove(cmd, api, id); err != nil {
				return err
			}
			a.say(cmd, "Deleted %s.", goes)
			return nil
		},
	}
}

func (a *app) newDeletePoolCommand() *cobra.Command {
	return a.newDeleteCommand("POOL", "End a pool in which nothing is left; its history stays (operators)",
		"pools delete spare --yes",
		func(cmd *cobra.Command, api *client.Client, ref string) (string, string, error) {
			p, err := api.Pool(cmd.Context(), ref)
			return p.ID, fmt.Sprintf("pool %s (%s, up to %s of %s)", p.Name, p.Model, formatCount(p.MaxNodes, "node"),
				formatCount(p.GPUsPerNode, "GPU")), err
		},
		func(cmd *cobra.Command, api *client.Client, id string) error {
			return api.DeletePool(a.withIdempotencyKey(cmd.Context()), id)
		})
}

func (a *app) newDeleteOrganizationCommand() *cobra.Command {
	return a.newDeleteCommand("ORGANIZATION",
		"End a tenant that holds nothing, with its people and keys; its history stays (operators)",
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
			return o.ID, fmt.Sprintf("organization %s with its %s and %s", o.Name, formatCount(people, "user"),
				formatCount(keys, "key")), nil
		},
		func(cmd *cobra.Command, api *client.Client, id string) error {
			return api.DeleteOrganization(a.withIdempotencyKey(cmd.Context()), id)
		})
}

func (a *app) newDeleteUserCommand() *cobra.Command {
	return a.newDeleteCommand("USER", "End a person, with their keys; what they booked stays (admins)",
		"users delete ada@example.com --yes",
		func(cmd *cobra.Command, api *client.Client, ref string) (string, string, error) {
			u, err := a.findUser(cmd, api, ref)
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
			goes := fmt.Sprintf("user %s (%s of %s)", u.Email, u.Role, firstNonEmpty(u.OrganizationName, u.OrganizationID))
			if len(names) > 0 {
				goes += " and their keys " + strings.Join(names, ", ")
			}
			return u.ID, goes, nil
		},
		func(cmd *cobra.Command, api *client.Client, id string) error {
			return api.DeleteUser(a.withIdempotencyKey(cmd.Context()), id)
		})
}

// findUser finds a user by id or e-mail address.
func (a *app) findUser(cmd *cobra.Command, api *client.Client, ref string) (contract.User, error) {
	for u, err := range api.Users(cmd.Context(), client.Filter{}) {
		if err != nil || u.ID == ref || strings.EqualFold(u.Email, ref) {
			return u, err
		}
	}
	return contract.User{}, &Error{Exit: ExitNotFound, Message: fmt.Sprintf("there is no user %q", ref),
		Next: []string{"forewarm users list"}}
}
