package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/ledger"
)

// RecoverCommand makes an operator's key on the host, where the data directory,
// or the database's URL and the pepper, are proof enough. It may run beside the
// server.
func RecoverCommand(version string, contexts Contexts) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use: "recover", Short: "Make an operator's key on the server's own host, when all others are lost",
		Args: cobra.NoArgs,
		Long: "Makes an operator's key that never expires and does not depend on another key. It works on the data\n" +
			"directory (--data-dir), even while forewarm up runs, or with FOREWARM_DATABASE and FOREWARM_PEPPER. The\n" +
			"journal records it. The key is shown once. It is also saved as a context for the server at --listen, and\n" +
			"that context is then in use.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := f.readConfig()
			if err != nil {
				return err
			}
			if err := cfg.hasPepper(); err != nil {
				return err
			}
			return withApp(cmd.Context(), cfg, version, func(ctx context.Context, a *app) error {
				return a.recoverKey(ctx, cmd, contexts)
			})
		},
	}
	f.addFlags(cmd)
	f.addListen(cmd)
	return cmd
}

// hasPepper refuses to make a pepper where the keys there are were made with
// another one.
func (c Config) hasPepper() error {
	if !c.Pepper.IsZero() {
		return nil
	}
	if !c.Database.IsZero() {
		return errors.New("FOREWARM_PEPPER is not set: use the servers' pepper, or they will not accept keys that are " +
			"made here")
	}
	_, err := os.Stat(filepath.Join(c.DataDir, "pepper"))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("nothing was set up in %s: name the directory of forewarm up with --data-dir", c.DataDir)
	}
	return err
}

func (a *app) recoverKey(ctx context.Context, cmd *cobra.Command, contexts Contexts) error {
	if err := a.awaitSchema(ctx); err != nil {
		return err
	}
	k, text, err := a.minter.Mint(ledger.Key{Name: "recovered"})
	if err != nil {
		return fmt.Errorf("minting a key: %w", err)
	}
	if _, err := a.ledger.RecoverOperator(ctx, k); errors.Is(err, ledger.ErrNotFound) {
		return errors.New("nothing is set up here yet: run forewarm up or forewarm migrate, which make the first key")
	} else if err != nil {
		return fmt.Errorf("storing the key: %w", err)
	}
	fmt.Fprintln(cmd.ErrOrStderr(), "an operator's key, shown once:")
	fmt.Fprintln(cmd.OutOrStdout(), text.Reveal())
	if !a.cfg.isEmbedded() {
		return nil
	}
	base, err := a.serverAddress(cmd)
	if err != nil || base == "" {
		fmt.Fprintln(cmd.ErrOrStderr(),
			"no context was saved, because the server's address is not known; forewarm login --server URL saves one")
		return err
	}
	saved, err := contexts.Save(a.context, base, text)
	if err != nil {
		a.log.Warn("the context could not be saved", "error", err)
		return nil
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "context %q saved and selected, for %s\n", saved, base)
	return nil
}

// serverAddress is where the server of the data directory is reached: as --listen says,
// or where its last start listened; empty: neither tells.
func (a *app) serverAddress(cmd *cobra.Command) (string, error) {
	if cmd.Flags().Changed("listen") {
		return "http://" + a.cfg.Listen, nil
	}
	return a.notedAddress()
}
