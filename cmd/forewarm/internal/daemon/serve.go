package daemon

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/worker/reconcile"
)

func serverCommand(version string) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use: "server", Short: "Run the API alone (production: with FOREWARM_DATABASE and FOREWARM_REDIS)", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := f.read()
			if err != nil {
				return err
			}
			if err := cfg.sharesPepper(); err != nil {
				return err
			}
			if cfg.embedded() {
				return errors.New("a server alone needs FOREWARM_REDIS, or nobody would do its work; forewarm up runs everything in one process")
			}
			return serveAPI(cmd.Context(), cfg, version)
		},
	}
	f.add(cmd)
	f.addListen(cmd)
	f.addWait(cmd, forever)
	return cmd
}

// serveAPI listens at once and opens the API as soon as its database is there.
func serveAPI(ctx context.Context, cfg Config, version string) error {
	l, err := cfg.listenAPI(ctx)
	if err != nil {
		return err
	}
	f := newFront()
	cfg.missing = f.lack
	var a *app
	end := func() {}
	err = group(ctx, serve(l, f), func(ctx context.Context) (err error) {
		if a, err = newApp(ctx, cfg, "live"); err != nil {
			return unlessTold(ctx, err)
		}
		a.version = version
		if err := a.ready(ctx); err != nil {
			return unlessTold(ctx, err)
		}
		s, err := a.server(nil)
		if err != nil {
			return err
		}
		mark, err := a.trusted(ctx)
		if err != nil {
			return unlessTold(ctx, err)
		}
		end = func() { mark.Last(ctx) }
		f.open(s)
		a.log.InfoContext(ctx, "API is up", "address", l.Addr().String(), "ledger", a.cfg.masked())
		return group(ctx, s.Run, func(ctx context.Context) error { mark.Run(ctx, func() {}); return nil })
	})
	end()
	if a != nil {
		err = errors.Join(err, a.store.Close())
	}
	return err
}

// trusted compares the database with how far this process has seen its journal,
// before anything is handed out on its word.
func (a *app) trusted(ctx context.Context) (*reconcile.Watermark, error) {
	mark := reconcile.NewWatermark(a.ledger, a.cfg.watermark(), a.log)
	return mark, a.cfg.wait.await(ctx, a.database(), mark.Step)
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
			if err := cfg.sharesPepper(); err != nil && !cfg.ownDatabase() {
				return err
			}
			release, err := hold(cfg.DataDir)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, release()) }()
			return work(cmd.Context(), cfg, version)
		},
	}
	f.add(cmd)
	f.addWait(cmd, forever)
	return cmd
}

// work shows metrics, if they have an address, at once, and works as soon as the
// database is there.
func work(ctx context.Context, cfg Config, version string) error {
	f := newFront()
	cfg.missing = f.lack
	actors := []actor{func(ctx context.Context) error { return runWorker(ctx, cfg, version, f) }}
	if cfg.MetricsListen != "" {
		l, err := listen(ctx, cfg.MetricsListen)
		if err != nil {
			return err
		}
		actors = append(actors, serve(l, f))
	}
	return group(ctx, actors...)
}

func runWorker(ctx context.Context, cfg Config, version string, f *front) error {
	a, err := newApp(ctx, cfg, "live")
	if err != nil {
		return unlessTold(ctx, err)
	}
	a.version = version
	return errors.Join(a.work(ctx, func(note func() string) { f.open(a.metricsHandler(note)) }), a.store.Close())
}

// work runs a worker; up is called when it begins, with what tells what it does
// without.
func (a *app) work(ctx context.Context, up func(note func() string)) error {
	if err := a.ready(ctx); err != nil {
		return unlessTold(ctx, err)
	}
	q, err := a.queue(ctx)
	if err != nil {
		return unlessTold(ctx, err)
	}
	w, err := a.worker(q)
	if err != nil {
		return errors.Join(err, q.Close())
	}
	up(q.Note)
	a.log.InfoContext(ctx, "worker is up", "ledger", a.cfg.masked())
	return errors.Join(w.Run(ctx), q.Close())
}

// unlessTold is nil for what only failed because the process was told to end
// while it waited: a server that has begun nothing has nothing to answer for.
func unlessTold(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
