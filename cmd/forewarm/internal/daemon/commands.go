package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/internal/httpx"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/sqlledger"
)

// flags that the daemon commands share.
type flags struct {
	config  string
	listen  string
	dataDir string
	wait    patience
}

func (f *flags) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.config, "config", "", "configuration file (forewarm.yaml)")
	cmd.Flags().StringVar(&f.dataDir, "data-dir", "",
		"where an embedded run keeps its database, keys and simulated machines")
}

func (f *flags) addListen(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.listen, "listen", "", "address of the API (default 127.0.0.1:8787)")
}

// addWait adds the patience of a start, unless the flag says otherwise.
func (f *flags) addWait(cmd *cobra.Command, otherwise patience) {
	f.wait = otherwise
	cmd.Flags().Var(&f.wait, "wait-for-database",
		"how long to wait at the start for a database that cannot be reached; 0s: not at all, forever")
}

// readConfig is the configuration: file, then environment, then flags.
func (f *flags) readConfig() (Config, error) {
	cfg, err := loadConfig(f.config)
	if err != nil {
		return cfg, err
	}
	if f.dataDir != "" {
		cfg.DataDir = f.dataDir
		cfg.noteOrigin("data_dir", "--data-dir")
	}
	if f.listen != "" {
		cfg.Listen = f.listen
		cfg.noteOrigin("listen", "--listen")
	}
	cfg.wait = f.wait
	return cfg, cfg.checkAddresses()
}

// Contexts is where the people's commands keep servers and the keys for them.
type Contexts interface {
	// Save keeps a server and its key under a name, or one made from it where that
	// is another server's, selects it and returns its name.
	Save(name, server string, key obs.Secret) (saved string, err error)
	// Move has a name stand for the same key at another server.
	Move(name, server string) error
	// Current returns the name that is selected; empty: none is.
	Current() (string, error)
	// Of returns the keys that are kept for a server, by name.
	Of(server string) (map[string]obs.Secret, error)
}

// Commands are up, server, worker, migrate and doctor. The first key of an embedded run is
// kept in contexts.
func Commands(version string, contexts Contexts) []*cobra.Command {
	return []*cobra.Command{upCommand(version, contexts), serverCommand(version), workerCommand(version),
		migrateCommand(), doctorCommand(version)}
}

func migrateCommand() *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use: "migrate", Short: "Bring the database's schema up to date, and create the first key and the declared pools",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := f.readConfig()
			if err != nil {
				return err
			}
			if err := cfg.sharesPepper(); err != nil && !cfg.ownDatabase() {
				return err
			}
			return withApp(cmd.Context(), cfg, "", func(ctx context.Context, a *app) error {
				key, started, err := a.prepareInstallation(ctx)
				if err != nil {
					return err
				}
				fmt.Fprintln(cmd.ErrOrStderr(), "the schema is up to date")
				for _, p := range started.Pools {
					fmt.Fprintln(cmd.ErrOrStderr(), poolOutcome(p))
				}
				if !key.IsZero() {
					fmt.Fprintln(cmd.ErrOrStderr(), "the first key, shown once:")
					fmt.Fprintln(cmd.OutOrStdout(), key.Reveal())
				}
				return nil
			})
		},
	}
	f.addFlags(cmd)
	f.addWait(cmd, patience(time.Minute))
	return cmd
}

// poolOutcome says what became of a declared pool.
func poolOutcome(p ledger.StartedPool) string {
	switch {
	case !p.Made:
		return fmt.Sprintf("pool %q exists and stays as it is: change it with forewarm pools edit", p.Name)
	case p.DeletedAt.IsZero():
		return fmt.Sprintf("pool %q was made", p.Name)
	default:
		return fmt.Sprintf("pool %q was made again, because the configuration declares it: it was deleted %s; remove "+
			"it from the configuration to keep it deleted",
			p.Name, p.DeletedAt.UTC().Format(time.RFC3339))
	}
}

// withApp runs a part of the control plane and closes its ledger afterwards.
func withApp(ctx context.Context, cfg Config, version string, run func(context.Context, *app) error) error {
	a, err := newApp(ctx, cfg, "live")
	if err != nil {
		return err
	}
	a.version = version
	return errors.Join(run(ctx, a), a.store.Close())
}

// awaitSchema makes sure that the schema is this program's before work begins. Only
// up and migrate change it.
func (a *app) awaitSchema(ctx context.Context) error {
	return a.cfg.wait.awaitService(ctx, a.databaseService(), a.checkSchema)
}

func (a *app) checkSchema(ctx context.Context) error {
	have, want, err := a.store.SchemaVersion(ctx)
	if err != nil {
		return fmt.Errorf("reaching the ledger: %w", err)
	}
	if have != want {
		return fmt.Errorf("the database has schema %d and this program needs %d: run forewarm migrate", have, want)
	}
	if refused, err := sqlledger.RefusesWrites(ctx, a.store); err != nil {
		return err
	} else if refused != "" {
		a.log.ErrorContext(ctx, refused)
	}
	doubts, err := a.store.SettingWarnings(ctx)
	for _, doubt := range doubts {
		a.log.WarnContext(ctx, doubt)
	}
	if err != nil {
		return err
	}
	return a.checkPepper(ctx)
}

// sharesPepper refuses to make a pepper for a process that shares its database
// with others: none of them would know the keys of another.
func (c Config) sharesPepper() error {
	if !c.Pepper.IsZero() {
		return nil
	}
	return errors.New("FOREWARM_PEPPER is not set: give forewarm migrate, every server and every worker the same " +
		"one, or they will not recognize each other's keys. For a new installation, once: export " +
		"FOREWARM_PEPPER=1:$(openssl rand -hex 32)")
}

// ownDatabase reports whether the database is a file of this machine, beside
// which a pepper may be made.
func (c Config) ownDatabase() bool { return strings.HasPrefix(c.databaseURL(), "sqlite://") }

// checkPepper refuses to serve with a pepper under which no stored key is known.
func (a *app) checkPepper(ctx context.Context) error {
	err := a.ledger.CheckPepper(ctx)
	if errors.Is(err, ledger.ErrOtherPepper) {
		return fmt.Errorf("%w: set FOREWARM_PEPPER to the one that forewarm migrate had, or bring back the file "+
			"pepper of the data directory", err)
	}
	return err
}

// listenAPI opens the address of the API with its bounds.
func (c Config) listenAPI(ctx context.Context) (net.Listener, error) {
	l, err := openListener(ctx, c.Listen, "--listen, such as --listen 127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	bounded, err := c.boundListener(l)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return bounded, nil
}

// openListener opens the address, with the fix when it is taken: another one, by this
// setting.
func openListener(ctx context.Context, address, setting string) (net.Listener, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		if at, failed := netip.ParseAddrPort(address); failed == nil {
			if user, held := httpx.HolderAt(at); held {
				return nil, fmt.Errorf("%s is in use by a program of somebody who holds GPUs here, of user %d: end it, as root "+
					"with pkill -U %d, or choose another address with %s", address, user, user, setting)
			}
		}
		return nil, fmt.Errorf("%s is in use: another forewarm may be running; stop it, or choose another address "+
			"with %s", address, setting)
	}
	if err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	return l, nil
}
