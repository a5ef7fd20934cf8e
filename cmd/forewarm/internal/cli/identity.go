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
		{head: "CREATED", cell: func(x contract.Organization) string { return stamp(x.CreatedAt) }, wide: true},
	},
}

func (a *app) org() *cobra.Command {
	show := &cobra.Command{
		Use: "show [ORGANIZATION]", Short: "Show one organization, your own when left out", Args: atMostOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			api, id, err := a.organization(cmd, args)
			if err != nil {
				return err
			}
			got, err := api.Organization(cmd.Context(), id)
			if err != nil {
				return err
			}
			return one(a, cmd, orgView, got)
		},
	}
	return group("orgs", "See and define tenants", all(a, "organizations", orgView, (*client.Client).Organizations),
		show, a.orgCreate(), a.orgsDelete())
}

func atMostOne(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return named("ORGANIZATION")(cmd, args)
	}
	return nil
}

// organization is the one named, else the caller's own.
func (a *app) organization(cmd *cobra.Command, args []string) (*client.Client, string, error) {
	api, err := a.client()
	if err != nil || len(args) > 0 {
		return api, strings.Join(args, ""), err
	}
	who, err := api.Whoami(cmd.Context())
	return api, who.OrganizationID, err
}

func (a *app) orgCreate() *cobra.Command {
	var gpus int
	var budget string
	c := &cobra.Command{
		Use: "create NAME --max-gpus N", Short: "Make a tenant (operators)", Args: named("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := need(cmd, "max-gpus"); err != nil {
				return err
			}
			api, err := a.client()
			if err != nil {
				return err
			}
			got, err := api.CreateOrganization(a.send(cmd.Context()), contract.OrganizationCreate{Name: args[0],
				Limits: contract.Limits{MaxGPUs: gpus, SpeculationPerDay: dollars(budget)}})
			if err != nil {
				return err
			}
			return one(a, cmd, orgView, got)
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
		{head: "CAPS", cell: func(x contract.User) string { return caps(x.Caps) }, wide: true},
		{head: "ORGANIZATION",
			cell: func(x contract.User) string { return first(x.OrganizationName, x.OrganizationID) }},
	},
}

func (a *app) user() *cobra.Command {
	var in contract.UserCreate
	create := &cobra.Command{
		Use: "create EMAIL --role ROLE", Short: "Make a user (admins)", Args: named("EMAIL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := need(cmd, "role"); err != nil {
				return err
			}
			in.Email = args[0]
			api, err := a.client()
			if err != nil {
				return err
			}
			got, err := api.CreateUser(a.send(cmd.Context()), in)
			if err != nil {
				return err
			}
			return one(a, cmd, userView, got)
		},
	}
	create.Flags().StringVar(&in.Role, "role", "", "viewer, member or admin")
	create.Flags().StringVar(&in.OrganizationID, "org", "", "id or name of the organization (default your own)")
	return group("users", "See and make users", all(a, "users", userView, (*client.Client).Users), create, a.userCaps(),
		a.usersDelete())
}
