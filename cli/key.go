package cli

import (
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

var keyView = view[contract.Key]{
	name: func(x contract.Key) string { return x.ID },
	columns: []column[contract.Key]{
		{head: "ID", cell: func(x contract.Key) string { return x.ID }},
		{head: "NAME", cell: func(x contract.Key) string { return x.Name }},
		{head: "KIND", cell: func(x contract.Key) string { return x.Kind }},
		{head: "ROLE", cell: func(x contract.Key) string { return x.Role }},
		{head: "LAST 4", cell: func(x contract.Key) string { return "…" + x.Last4 }},
		{head: "CAPS", cell: func(x contract.Key) string { return capsText(x.Caps) }},
		{head: "LAST USED", cell: func(x contract.Key) string { return formatTime(x.LastUsedAt) }},
		{head: "REVOKED", cell: func(x contract.Key) string { return formatTime(x.RevokedAt) }},
		{head: "EXPIRES", cell: func(x contract.Key) string { return formatTime(x.ExpiresAt) }, wide: true},
		{head: "RESTS ON", cell: func(x contract.Key) string { return orDash(x.ParentID) }, wide: true},
		{head: "USER", cell: func(x contract.Key) string { return orDash(firstNonEmpty(x.UserEmail, x.UserID)) }, wide: true},
		{head: "ORGANIZATION",
			cell: func(x contract.Key) string { return orDash(firstNonEmpty(x.OrganizationName, x.OrganizationID)) }, wide: true},
	},
}

func capsText(c *contract.Caps) string {
	if c == nil {
		return "-"
	}
	text := fmt.Sprintf("%s, %s a day, %s ahead, %s long", formatCount(c.MaxGPUs, "GPU"), formatMoney(c.MaxPerDay),
		formatSeconds(c.MaxLeadSeconds), formatSeconds(c.MaxWindowSeconds))
	if c.GPUHoursPerDay != nil {
		text += ", " + formatCount(*c.GPUHoursPerDay, "GPU-hour") + " a day"
	}
	return text
}

// createdKey shows the one answer that holds a secret.
var createdKey = view[contract.KeyCreated]{
	name: func(x contract.KeyCreated) string { return x.Key.ID },
	columns: []column[contract.KeyCreated]{
		{head: "ID", cell: func(x contract.KeyCreated) string { return x.Key.ID }},
		{head: "NAME", cell: func(x contract.KeyCreated) string { return x.Key.Name }},
		{head: "KIND", cell: func(x contract.KeyCreated) string { return x.Key.Kind }},
		{head: "ROLE", cell: func(x contract.KeyCreated) string { return x.Key.Role }},
		{head: "CAPS", cell: func(x contract.KeyCreated) string { return capsText(x.Key.Caps) }},
		{head: "SECRET", cell: func(x contract.KeyCreated) string { return x.Secret }},
	},
}

func (a *app) newKeysCommand() *cobra.Command {
	list, _ := newLiveListCommand(a, "keys", keyView, (*client.Client).Keys, "also those that are revoked or expired")
	return newGroupCommand("key", "Make and revoke API keys", a.newCreateKeyCommand(), list, a.newRevokeKeyCommand(), a.newAdoptKeyCommand())
}

// keyFlags are what forewarm key create is told.
type keyFlags struct {
	in      contract.KeyCreate
	caps    capsFlags
	out     string
	expires keyLife
}

func (a *app) newCreateKeyCommand() *cobra.Command {
	var k keyFlags
	c := &cobra.Command{
		Use: "create NAME", Short: "Make an API key, which can do no more than yours", Args: exactArgs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			k.in.Name = args[0]
			if err := k.completeRequest(cmd); err != nil {
				return err
			}
			return a.makeKey(cmd, k)
		},
	}
	f := c.Flags()
	f.StringVar(&k.in.Kind, "kind", contract.KindPerson, "person or agent")
	f.StringVar(&k.in.Role, "role", "member", "viewer, member, admin or operator")
	f.StringVar(&k.in.UserID, "user", "", "id or e-mail address of the user that it acts for")
	f.StringVar(&k.in.OrganizationID, "org", "", "id or name of the organization (default your own)")
	f.Var(&k.expires, "expires",
		"how long it works, or never (default 90 days for a person's key, unless the server was told otherwise; "+
			"never longer than yours)")
	k.caps.bindFlags(f, "; an agent's key, and any with caps, needs it")
	f.StringVar(&k.out, "out", "", "write the secret to this new file, for its owner alone, and do not show it")
	return c
}

// completeRequest turns the flags into a request.
func (k *keyFlags) completeRequest(cmd *cobra.Command) error {
	k.in.ExpiresInSeconds, k.in.NeverExpires = k.expires.seconds(), k.expires.never
	if k.in.Kind != contract.KindAgent && !k.caps.anyGiven(cmd) {
		return nil
	}
	var err error
	k.in.Caps, err = k.caps.readCaps(cmd, nil)
	return err
}

// makeKey opens the file for the secret first: a secret that cannot be written
// down is lost.
func (a *app) makeKey(cmd *cobra.Command, k keyFlags) error {
	var out *os.File
	if k.out != "" {
		var err error
		if out, err = os.OpenFile(k.out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
			return &Error{Exit: ExitUsage, Message: "--out: " + err.Error(),
				Next: []string{"forewarm key create --help"}, Err: err}
		}
		defer func() { _ = out.Close() }()
	}
	api, err := a.newClient()
	if err != nil {
		return err
	}
	got, err := api.CreateKey(a.withIdempotencyKey(cmd.Context()), k.in)
	if err != nil {
		if out != nil {
			_ = os.Remove(k.out)
		}
		return err
	}
	if out == nil {
		a.say(cmd, "The secret is shown this once and stored nowhere.")
		return showOne(a, cmd, createdKey, got)
	}
	if _, err := fmt.Fprintln(out, got.Secret); err != nil {
		return fmt.Errorf("writing the secret, which is lost: revoke key %s: %w", got.Key.ID, err)
	}
	return showOne(a, cmd, keyView, got.Key)
}

func (a *app) newRevokeKeyCommand() *cobra.Command {
	return &cobra.Command{
		Use: "revoke KEY", Short: "End a key for ever, and all keys that were made with it", Args: exactArgs("KEY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := a.newClient()
			if err != nil {
				return err
			}
			if err := a.keyIsThere(cmd, api, args[0]); err != nil {
				return err
			}
			question, err := a.revokeQuestion(cmd, api, args[0])
			if err != nil {
				return err
			}
			if err := a.confirm(cmd, args, question); err != nil {
				return err
			}
			got, err := api.RevokeKey(a.withIdempotencyKey(cmd.Context()), args[0])
			if err != nil {
				return err
			}
			for _, k := range got.Ended {
				a.say(cmd, "Key %s (%s) rested on it and ended with it.", k.Name, k.ID)
			}
			for _, s := range got.Schedules {
				with := "it"
				if s.MadeBy != got.ID {
					with = "key " + firstNonEmpty(s.MadeByName, s.MadeBy) + ", which ended with it,"
				}
				a.say(cmd, "Schedule %s (%s) was made with %s and goes on; to end it: forewarm schedules delete %s",
					s.Name, s.ID, with, s.ID)
			}
			return showOne(a, cmd, keyView, got)
		},
	}
}

// revokeQuestion asks whether to end a key, and says which others end with it and whether
// that ends the one in use.
func (a *app) revokeQuestion(cmd *cobra.Command, api *client.Client, ref string) (string, error) {
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
		question += fmt.Sprintf(", and with it %s: %s", formatCount(len(names), "key"), strings.Join(names, ", "))
	}
	who, err := api.Whoami(cmd.Context())
	if err == nil && ended[who.KeyID] {
		question += "; that ends the key in use"
	}
	return question, err
}

// newAdoptKeyCommand keeps a key from ending with the one that made it.
func (a *app) newAdoptKeyCommand() *cobra.Command {
	return &cobra.Command{
		Use: "adopt KEY", Short: "Have a key stand for itself: it no longer ends with the key that made it (operators)",
		Args: exactArgs("KEY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := a.newClient()
			if err != nil {
				return err
			}
			if err := a.keyIsThere(cmd, api, args[0]); err != nil {
				return err
			}
			got, err := api.AdoptKey(a.withIdempotencyKey(cmd.Context()), args[0])
			if err != nil {
				return err
			}
			return showOne(a, cmd, keyView, got)
		},
	}
}

// keyIsThere looks, before a dry run, for a key, which cannot be read alone.
func (a *app) keyIsThere(cmd *cobra.Command, api *client.Client, idOrName string) error {
	if !a.flags.dryRun {
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

// keyLife is how long a key works: a time, or never an end.
type keyLife struct {
	span
	never bool
}

// Set reads a duration, or the word never.
func (l *keyLife) Set(text string) error {
	if l.never = text == "never"; l.never {
		l.span = 0
		return nil
	}
	if err := l.span.Set(text); err != nil {
		return fmt.Errorf("%w, or never", err)
	}
	return nil
}

// String writes what was set; nothing when nothing was.
func (l *keyLife) String() string {
	if l.never {
		return "never"
	}
	return l.span.String()
}
