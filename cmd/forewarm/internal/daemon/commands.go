package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/ledger"
)

// flags that the daemon commands share.
type flags struct {
	config  string
	listen  string
	dataDir string
}

func (f *flags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.config, "config", "", "configuration file (forewarm.yaml)")
	cmd.Flags().StringVar(&f.dataDir, "data-dir", "", "where an embedded run keeps its database, keys and simulated machines")
}

func (f *flags) addListen(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.listen, "listen", "", "address of the API (default 127.0.0.1:8787)")
}

// read is the configuration: file, then environment, then flags.
func (f *flags) read() (Config, error) {
	cfg, err := load(f.config)
	if err != nil {
		return cfg, err
	}
	if f.dataDir != "" {
		cfg.DataDir = f.dataDir
	}
	if f.listen != "" {
		cfg.Listen = f.listen
	}
	return cfg, cfg.listen()
}

// SaveContext remembers a server and its key for the people's commands.
type SaveContext func(name, server string, key obs.Secret) error

// Commands are up, server, worker and migrate. save is told of the first key of
// an embedded run.
func Commands(version string, save SaveContext) []*cobra.Command {
	return []*cobra.Command{upCommand(version, save), serverCommand(version), workerCommand(version), migrateCommand()}
}

func serverCommand(version string) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use: "server", Short: "Run the API alone (production: with FOREWARM_DATABASE and FOREWARM_REDIS)", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := f.read()
			if err != nil {
				return err
			}
			if cfg.Pepper.IsZero() {
				return errors.New("FOREWARM_PEPPER is not set: a server without the pepper of forewarm migrate knows no key; give all of them the same")
			}
			return withApp(cmd.Context(), f, version, func(ctx context.Context, a *app) error {
				if a.cfg.embedded() {
					return errors.New("a server alone needs FOREWARM_REDIS, or nobody would do its work; forewarm up runs everything in one process")
				}
				if err := a.ready(ctx); err != nil {
					return err
				}
				l, err := a.listenAPI(ctx)
				if err != nil {
					return err
				}
				s, err := a.server(nil)
				if err != nil {
					return err
				}
				a.log.Info("API is up", "address", l.Addr().String(), "ledger", a.cfg.masked())
				return group(ctx, serve(l, s), s.Run)
			})
		},
	}
	f.add(cmd)
	f.addListen(cmd)
	return cmd
}

func workerCommand(version string) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use: "worker", Short: "Run a worker alone (any number may run, each with its own data directory)", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			cfg, err := f.read()
			if err != nil {
				return err
			}
			release, err := hold(cfg.DataDir)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, release()) }()
			return withApp(cmd.Context(), f, version, func(ctx context.Context, a *app) error {
				if err := a.ready(ctx); err != nil {
					return err
				}
				q, err := a.queue()
				if err != nil {
					return fmt.Errorf("opening the queue: %w", err)
				}
				w, err := a.worker(q)
				if err != nil {
					return errors.Join(err, q.Close())
				}
				actors := []actor{w.Run}
				if a.cfg.MetricsListen != "" {
					l, err := listen(ctx, a.cfg.MetricsListen)
					if err != nil {
						return errors.Join(err, q.Close())
					}
					a.log.Info("metrics are up", "address", l.Addr().String())
					actors = append(actors, serve(l, a.metricsHandler()))
				}
				a.log.Info("worker is up", "ledger", a.cfg.masked())
				return errors.Join(group(ctx, actors...), q.Close())
			})
		},
	}
	f.add(cmd)
	return cmd
}

func migrateCommand() *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use: "migrate", Short: "Bring the database's schema up to date, make the first key and the declared pools", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withApp(cmd.Context(), f, "", func(ctx context.Context, a *app) error {
				key, err := a.prepare(ctx)
				if err != nil {
					return err
				}
				fmt.Fprintln(cmd.ErrOrStderr(), "the schema is up to date")
				if !key.IsZero() {
					fmt.Fprintln(cmd.ErrOrStderr(), "the first key, shown once:")
					fmt.Fprintln(cmd.OutOrStdout(), key.Reveal())
				}
				return nil
			})
		},
	}
	f.add(cmd)
	return cmd
}

// withApp runs a part of the control plane and closes its ledger afterwards.
func withApp(ctx context.Context, f flags, version string, run func(context.Context, *app) error) error {
	cfg, err := f.read()
	if err != nil {
		return err
	}
	a, err := newApp(ctx, cfg, "live")
	if err != nil {
		return err
	}
	a.version = version
	return errors.Join(run(ctx, a), a.store.Close())
}

// ready makes sure that the schema is this program's before work begins. Only
// up and migrate change it.
func (a *app) ready(ctx context.Context) error {
	have, want, err := a.store.SchemaVersion(ctx)
	if err != nil {
		return fmt.Errorf("reaching the ledger: %w", err)
	}
	if have != want {
		return fmt.Errorf("the database has schema %d and this program needs %d: run forewarm migrate", have, want)
	}
	doubts, err := a.store.Doubts(ctx)
	for _, doubt := range doubts {
		a.log.WarnContext(ctx, doubt)
	}
	if err != nil {
		return err
	}
	return a.checkPepper(ctx)
}

// checkPepper refuses to serve with a pepper under which no stored key is known.
func (a *app) checkPepper(ctx context.Context) error {
	err := a.ledger.CheckPepper(ctx)
	if errors.Is(err, ledger.ErrOtherPepper) {
		return fmt.Errorf("%w: set FOREWARM_PEPPER to the one that forewarm migrate had, or bring back the file pepper of the data directory", err)
	}
	return err
}

// listenAPI opens the address of the API with its bounds.
func (a *app) listenAPI(ctx context.Context) (net.Listener, error) {
	l, err := listen(ctx, a.cfg.Listen)
	if err != nil {
		return nil, err
	}
	bounded, err := a.cfg.bounded(l)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return bounded, nil
}

// listen opens the address, with the fix when it is taken.
func listen(ctx context.Context, address string) (net.Listener, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s is in use: another forewarm may be running; stop it or choose --listen 127.0.0.1:0", address)
	}
	if err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	return l, nil
}
