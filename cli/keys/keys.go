// Package keys has the commands about API keys, and whoami.
package keys

import (
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/listing"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// NewCommand is the command key.
func NewCommand(a *app.App) *cobra.Command {
	list, _ :=
		listing.NewLiveCommand(a, "keys", keyView, (*client.Client).Keys, "include revoked and expired keys")
	return app.NewGroupCommand("key", "Make and revoke API keys", newCreateCommand(a), list, newRevokeCommand(a),
		newAdoptCommand(a))
}

// keyIsThere looks, before a dry run, for a key, which cannot be read alone.
func keyIsThere(a *app.App, cmd *cobra.Command, api *client.Client, idOrName string) error {
	if !a.Flags.DryRun {
		return nil
	}
	for k, err := range api.Keys(cmd.Context(), client.Filter{All: true}) {
		if err != nil || k.ID == idOrName || k.Name == idOrName {
			return err
		}
	}
	return &client.Error{Problem: contract.Problem{Status: http.StatusNotFound, Code: contract.CodeNotFound,
		Detail: fmt.Sprintf("There is no key %q.", idOrName)}}
}
