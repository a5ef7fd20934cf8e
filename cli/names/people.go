package names

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/client"
)

// User is the person that was named, which may be me.
func User(a *app.App, cmd *cobra.Command, named string) (string, error) {
	if named != "me" {
		return named, nil
	}
	api, err := a.NewClient()
	if err != nil {
		return "", err
	}
	who, err := api.Whoami(cmd.Context())
	if err == nil && who.UserID == "" {
		err = exit.UsageErrorf("forewarm whoami", "--user me: your key belongs to no person")
	}
	return who.UserID, err
}

// OptionalOrganization wants one argument at most, an organization.
func OptionalOrganization(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return flags.ExactArgs("ORGANIZATION")(cmd, args)
	}
	return nil
}

// Organization is the one named, else the caller's own.
func Organization(a *app.App, cmd *cobra.Command, args []string) (*client.Client, string, error) {
	api, err := a.NewClient()
	if err != nil || len(args) > 0 {
		return api, strings.Join(args, ""), err
	}
	who, err := api.Whoami(cmd.Context())
	return api, who.OrganizationID, err
}
