package keys

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/client"
)

func newRevokeCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "revoke KEY", Short: "Revoke a key for good, with all keys that were made with it",
		Args: flags.ExactArgs("KEY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := a.NewClient()
			if err != nil {
				return err
			}
			if err := keyIsThere(a, cmd, api, args[0]); err != nil {
				return err
			}
			question, err := revokeQuestion(a, cmd, api, args[0])
			if err != nil {
				return err
			}
			if err := a.Confirm(cmd, question); err != nil {
				return err
			}
			got, err := api.RevokeKey(a.WithIdempotencyKey(cmd.Context()), args[0])
			if err != nil {
				return err
			}
			for _, k := range got.Ended {
				a.Say(cmd, "Key %s (%s) depended on it and ended with it.", k.Name, k.ID)
			}
			for _, s := range got.Schedules {
				with := "it"
				if s.MadeBy != got.ID {
					with = "key " + cmp.Or(s.MadeByName, s.MadeBy) + ", which ended with it,"
				}
				a.Say(cmd, "Schedule %s (%s) was made with %s and continues; to end it: forewarm schedules delete %s",
					s.Name, s.ID, with, s.ID)
			}
			return output.One(a, cmd, keyView, got)
		},
	}
}

// revokeQuestion asks whether to end a key, and says which others end with it and whether
// that ends the one in use.
func revokeQuestion(a *app.App, cmd *cobra.Command, api *client.Client, ref string) (string, error) {
	keys, err := client.All(api.Keys(cmd.Context(), client.Filter{}))
	if err != nil {
		return "", err
	}
	ended := map[string]bool{}
	for _, k := range keys {
		if k.ID == ref {
			ended[k.ID] = true
		}
	}
	for _, k := range keys {
		if len(ended) == 0 && k.Name == ref {
			ended[k.ID] = true
		}
	}
	var names []string
	for range keys { // each round finds at least one more, or there is none
		for _, k := range keys {
			if !ended[k.ID] && k.ParentID != "" && ended[k.ParentID] {
				ended[k.ID], names = true, append(names, k.Name)
			}
		}
	}
	question := "Revoke key " + ref
	if len(names) > 0 {
		question += fmt.Sprintf(", and with it %s: %s", format.Count(len(names), "key"), strings.Join(names, ", "))
	}
	who, err := api.Whoami(cmd.Context())
	if err == nil && ended[who.KeyID] {
		question += "; that ends the key in use"
	}
	return question, err
}
