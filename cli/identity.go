package cli

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

var orgView = view[contract.Organization]{
	name: func(x contract.Organization) string { return x.ID },
	columns: []column[contract.Organization]{
		{head: "ID", cell: func(x contract.Organization) string { return x.ID }},
		{head: "NAME", cell: func(x contract.Organization) string { return x.Name }},
		{head: "MAX GPUS", right: true,
			cell: func(x contract.Organization) string { return strconv.Itoa(x.Limits.MaxGPUs) }},
		{head: "SPECULATION/DAY", right: true,
			cell: func(x contract.Organization) string { return formatMoney(x.Limits.SpeculationPerDay) }},
		{head: "CREATED", cell: func(x contract.Organization) string { return formatTime(x.CreatedAt) }, wide: true},
	},
}

func (a *app) newOrganizationsCommand() *cobra.Command {
	show := &cobra.Command{
		Use: "show [ORGANIZATION]", Short: "Show one organization, your own when left out", Args: atMostOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			api, id, err := a.resolveOrganization(cmd, args)
			if err != nil {
				return err
			}
			got, err := api.Organization(cmd.Context(), id)
			if err != nil {
				return err
			}
			return showOne(a, cmd, orgView, got)
		},
	}
	return newGroupCommand("orgs", "See and define tenants", newListCommand(a, "organizations", orgView, (*client.Client).Organizations),
		show, a.newCreateOrganizationCommand(), a.newDeleteOrganizationCommand())
}

func atMostOne(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return exactArgs("ORGANIZATION")(cmd, args)
	}
	return nil
}

// resolveOrganization is the one named, else the caller's own.
func (a *app) resolveOrganization(cmd *cobra.Command, args []string) (*client.Client, string, error) {
	api, err := a.newClient()
	if err != nil || len(args) > 0 {
		return api, strings.Join(args, ""), err
	}
	who, err := api.Whoami(cmd.Context())
	return api, who.OrganizationID, err
}

func (a *app) newCreateOrganizationCommand() *cobra.Command {
	var gpus int
	var budget string
	c := &cobra.Command{
		Use: "create NAME --max-gpus N", Short: "Make a tenant (operators)", Args: exactArgs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := needFlags(cmd, "max-gpus"); err != nil {
				return err
			}
			api, err := a.newClient()
			if err != nil {
				return err
			}
			got, err := api.CreateOrganization(a.withIdempotencyKey(cmd.Context()), contract.OrganizationCreate{Name: args[0],
				Limits: contract.Limits{MaxGPUs: gpus, SpeculationPerDay: parseDollars(budget)}})
			if err != nil {
				return err
			}
			return showOne(a, cmd, orgView, got)
		},
	}
	c.Flags().IntVar(&gpus, "max-gpus", 0, "GPUs held and promised at once")
	c.Flags().StringVar(&budget, "speculation-per-day", "0", "USD of speculative reservations a UTC day")
	return c
}

var userView = view[contract.User]{
	name: func(x contract.User) string { return x.ID },
	columns: []column[contract.User]{
		{head: "ID", cell: func(x contract.User) string { return x.ID }},
		{head: "EMAIL", cell: func(x contract.User) string { return x.Email }},
		{head: "ROLE", cell: func(x contract.User) string { return x.Role }},
		{head: "ACTIVE", cell: func(x contract.User) string { return yesNo(x.Active) }},
		{head: "CAPS", cell: func(x contract.User) string { return capsText(x.Caps) }, wide: true},
		{head: "ORGANIZATION",
			cell: func(x contract.User) string { return firstNonEmpty(x.OrganizationName, x.OrganizationID) }},
	},
}

func (a *app) newUsersCommand() *cobra.Command {
	var in contract.UserCreate
	create := &cobra.Command{
		Use: "create EMAIL --role ROLE", Short: "Make a user (admins)", Args: exactArgs("EMAIL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := needFlags(cmd, "role"); err != nil {
				return err
			}
			in.Email = args[0]
			api, err := a.newClient()
			if err != nil {
				return err
			}
			got, err := api.CreateUser(a.withIdempotencyKey(cmd.Context()), in)
			if err != nil {
				return err
			}
			return showOne(a, cmd, userView, got)
		},
	}
	create.Flags().StringVar(&in.Role, "role", "", "viewer, member or admin")
	create.Flags().StringVar(&in.OrganizationID, "org", "", "id or name of the organization (default your own)")
	return newGroupCommand("users", "See and make users", newListCommand(a, "users", userView, (*client.Client).Users), create, a.newUserCapsCommand(),
		a.newDeleteUserCommand())
}
