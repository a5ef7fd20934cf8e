package keys

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/caps"
	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/contract"
)

// createOptions are what forewarm key create is told.
type createOptions struct {
	in      contract.KeyCreate
	caps    caps.Flags
	out     string
	expires keyLife
}

func newCreateCommand(a *app.App) *cobra.Command {
	var k createOptions
	c := &cobra.Command{
		Use: "create NAME", Short: "Make an API key with at most the rights of yours", Args: flags.ExactArgs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			k.in.Name = args[0]
			if err := k.completeRequest(cmd); err != nil {
				return err
			}
			return makeKey(a, cmd, k)
		},
	}
	f := c.Flags()
	f.StringVar(&k.in.Kind, "kind", contract.KindPerson, "person or agent")
	f.StringVar(&k.in.Role, "role", "member", "viewer, member, admin or operator")
	f.StringVar(&k.in.UserID, "user", "", "id or e-mail address of the user that it acts for")
	f.StringVar(&k.in.OrganizationID, "org", "", "id or name of the organization (default your own)")
	f.Var(&k.expires, "expires",
		"how long it works, or never (default 90 days for a person's key, unless the server is configured otherwise; "+
			"never longer than yours)")
	k.caps.Bind(f, "; required for an agent's key and any key with caps")
	f.StringVar(&k.out, "out", "", "write the secret to this new file, which only its owner can read, instead of "+
		"showing it")
	return c
}

// completeRequest turns the flags into a request.
func (k *createOptions) completeRequest(cmd *cobra.Command) error {
	k.in.ExpiresInSeconds, k.in.NeverExpires = k.expires.Seconds(), k.expires.never
	if k.in.Kind != contract.KindAgent && !k.caps.Given(cmd) {
		return nil
	}
	var err error
	k.in.Caps, err = k.caps.Read(cmd, nil)
	return err
}

// makeKey opens the file for the secret first: a secret that cannot be written
// down is lost.
func makeKey(a *app.App, cmd *cobra.Command, k createOptions) error {
	var out *os.File
	if k.out != "" {
		var err error
		if out, err = os.OpenFile(k.out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
			return &exit.Error{Code: exit.Usage, Message: "--out: " + err.Error(),
				Next: []string{"forewarm key create --help"}, Err: err}
		}
		defer func() { _ = out.Close() }()
	}
	api, err := a.NewClient()
	if err != nil {
		return err
	}
	got, err := api.CreateKey(a.WithIdempotencyKey(cmd.Context()), k.in)
	if err != nil {
		if out != nil {
			_ = os.Remove(k.out)
		}
		return err
	}
	if out == nil {
		saySecret(a, cmd, got)
		return output.One(a, cmd, createdKey, got)
	}
	if _, err := fmt.Fprintln(out, got.Secret); err != nil {
		return fmt.Errorf("writing the secret, which is lost: revoke key %s: %w", got.Key.ID, err)
	}
	return output.One(a, cmd, keyView, got.Key)
}

// saySecret says that the secret is shown once, and shows it where the answer, being
// a name, would not.
func saySecret(a *app.App, cmd *cobra.Command, made contract.KeyCreated) {
	if a.Flags.Output == output.Name {
		a.Say(cmd, "The secret, shown only once and stored nowhere: %s", made.Secret)
		return
	}
	a.Say(cmd, "The secret is shown only once and stored nowhere.")
}
