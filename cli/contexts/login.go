package contexts

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/contextfile"
	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/internal/httpx"
)

// NewLoginCommand is the command login.
func NewLoginCommand(a *app.App) *cobra.Command {
	var as, file string
	c := &cobra.Command{
		Use: "login", Short: "Save a server and the key for it", Args: flags.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t, err := a.Target()
			if err != nil && !errors.Is(err, app.ErrForeignKey) {
				return err
			}
			if t.Key, err = readNewKey(a, cmd, file, t.Key); err != nil {
				return err
			}
			a.WarnOfPlainKey(t)
			api, err := client.New(t.Server, t.Key, httpx.NewClient(httpx.Config{UserAgent: a.UserAgent(),
				Transport: httpx.NewGuardedTransport()}))
			if err != nil {
				return &exit.Error{Code: exit.Usage, Message: err.Error(),
					Next: []string{"forewarm login --server " + contextfile.DefaultServer}}
			}
			who, err := api.Whoami(cmd.Context())
			if err != nil {
				return err
			}
			if a.Flags.DryRun {
				a.Say(cmd, "Dry run: nothing was changed. %s accepts the key %s, role %s; it would be saved as "+
					"context %q.", t.Server, cmp.Or(who.KeyName, who.KeyID), who.Role, as)
				return nil
			}
			if err := contextfile.Save(a.Getenv, as, t); err != nil {
				return err
			}
			a.Say(cmd, "Logged in to %s with key %s, role %s; saved as context %q, which is now in use.", t.Server,
				cmp.Or(who.KeyName, who.KeyID), who.Role, as)
			a.Say(cmd, "Next:  forewarm status")
			return nil
		},
	}
	c.Flags().StringVar(&as, "name", "default", "name of the saved context")
	c.Flags().StringVar(&file, "key-file", "", "file that holds the key; - reads standard input")
	return c
}

// readNewKey reads the key to save: from a file or standard input, else from the
// environment, else from a person. It is never an argument, which others could
// see.
func readNewKey(a *app.App, cmd *cobra.Command, file, known string) (string, error) {
	switch {
	case file == "-":
		data, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), 4096))
		if err != nil {
			return "", fmt.Errorf("reading the key: %w", err)
		}
		return trimKey(cmd, data, "standard input")
	case file != "":
		data, err := os.ReadFile(file)
		if err != nil {
			return "", &exit.Error{Code: exit.Usage, Message: "--key-file: " + err.Error(),
				Next: []string{flags.TypedLine(cmd, "key-file") + " --key-file FILE"}, Err: err}
		}
		return trimKey(cmd, data, file)
	case known != "":
		return known, nil
	case !a.Terminal(cmd.InOrStdin()):
		return "", &exit.Error{Code: exit.Login, Message: "no key was given, and there is no terminal to ask at",
			Next: []string{flags.TypedLine(cmd) + " --key-file FILE"}}
	}
	_, _ = fmt.Fprint(cmd.ErrOrStderr(), "API key (it will be visible): ")
	text, err := app.ReadLine(cmd.Context(), cmd.InOrStdin())
	return strings.TrimSpace(text), err
}

// trimKey is the key in what was read from somewhere, which must hold one: without
// it the server would say that a key is missing, and not where.
func trimKey(cmd *cobra.Command, data []byte, from string) (string, error) {
	key := strings.TrimSpace(string(data))
	if key == "" {
		return "", &exit.Error{Code: exit.Login, Message: "--key-file: there is no key in " + from,
			Next: []string{flags.TypedLine(cmd, "key-file") + " --key-file FILE"}}
	}
	return key, nil
}
