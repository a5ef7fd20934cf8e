package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/worker/reconcile"
)

func serverCommand(version string) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use: "server", Short: "Run the API alone (production, any number: with FOREWARM_DATABASE and FOREWARM_REDIS)",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := f.readConfig()
			if err != nil {
				return err
			}
			if err := cfg.sharesPepper(); err != nil {
				return err
			}
			if err := cfg.checkRedis(cmd.Context()); err != nil {
				return err
			}
			if cfg.isEmbedded() {
				return errors.New("a server alone needs FOREWARM_REDIS, or nobody would do its work; forewarm up " +
					"runs everything in one process")
			}
			return serveAPI(cmd.Context(), cfg, version)
		},
	}
	f.addFlags(cmd)
	f.addListen(cmd)
	f.addWait(cmd, forever)
	return cmd
}

// serveAPI listens at once and opens the API as soon as its database is there.
func serveAPI(ctx context.Context, cfg Config, version string) error {
	var err error
	if cfg.logger, err = cfg.Log.newLogger(); err != nil {
		return err
	}
	l, err := cfg.listenAPI(ctx)
	if err != nil {
		return err
	}
	cfg.workersApart = true
	f, metrics := newFront(), newFront()
	cfg.missing = func(what string) { f.setMissing(what); metrics.setMissing(what) }
	beside, err := cfg.besideMetrics(ctx, cfg.Server.MetricsListen, metrics)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	var a *app
	end := func() {}
	err = runGroup(ctx, append(beside, serveHTTP(l, f, cfg.logger), func(ctx context.Context) (err error) {
		if a, err = newApp(ctx, cfg, "live"); err != nil {
			return unlessTold(ctx, err)
		}
		a.version = version
		if err := a.awaitSchema(ctx); err != nil {
			return unlessTold(ctx, err)
		}
		join, err := a.joinPeers(ctx)
		if err != nil {
			return err
		}
		s, err := a.newServer(join)
		if err != nil {
			return err
		}
		mark, err := a.checkJournal(ctx)
		if err != nil {
			return unlessTold(ctx, err)
		}
		end = func() { mark.Finish(ctx) }
		f.setHandler(s)
		metrics.setHandler(a.metricsHandler(nil))
		defer a.tellEnd(ctx)()
		a.log.InfoContext(ctx, "API is up", "address", l.Addr().String(), "ledger", a.cfg.maskedText())
		return runGroup(ctx, s.Run, followScheduling(a),
			func(ctx context.Context) error { mark.Run(ctx, func() {}); return nil })
	})...)
	end()
	if a != nil {
		err = errors.Join(err, a.store.Close())
	}
	return err
}

// checkJournal compares the database with how far this process has seen its journal,
// before anything is handed out on its word.
func (a *app) checkJournal(ctx context.Context) (*reconcile.Watermark, error) {
	mark := reconcile.NewWatermark(a.ledger, a.cfg.watermarkPath(), a.log)
	return mark, a.cfg.wait.awaitService(ctx, a.databaseService(), mark.Step)
}

func workerCommand(version string) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use: "worker", Short: "Run a worker alone (any number, each with its own data directory; only one with sim or " +
			"local)", Args: cobra.NoArgs,
		Long: "Runs a worker alone. Any number of workers can share one database if they have the same provisioners; " +
			"each\n" +
			"needs its own data directory. The provisioners sim and local keep the state of their machines in a file of\n" +
			"one worker's data directory, so a second worker with either of them waits until the first is gone. With a data\n" +
			"directory of its own it has none of those machines: it says so in its log, and their nodes are lost.",
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			cfg, err := f.readConfig()
			if err != nil {
				return err
			}
			if err := cfg.sharesPepper(); err != nil && !cfg.ownDatabase() {
				return err
			}
			release, err := lockDataDir(cfg.DataDir)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, release()) }()
			return runWorkerProcess(cmd.Context(), cfg, version)
		},
	}
	f.addFlags(cmd)
	f.addWait(cmd, forever)
	return cmd
}

// runWorkerProcess shows metrics, if they have an address, at once, and works as soon as the
// database is there.
func runWorkerProcess(ctx context.Context, cfg Config, version string) error {
	var err error
	if cfg.logger, err = cfg.Log.newLogger(); err != nil {
		return err
	}
	f := newFront()
	cfg.missing = f.setMissing
	beside, err := cfg.besideMetrics(ctx, cfg.MetricsListen, f)
	if err != nil {
		return err
	}
	return runGroup(ctx, append(beside, func(ctx context.Context) error { return runWorker(ctx, cfg, version, f) })...)
}

// newLogger returns the one logger of a process: another one would not know what was said already.
func (l Log) newLogger() (*slog.Logger, error) {
	logging, err := obs.ParseConfig(l.Level, l.Format)
	if err != nil {
		return nil, fmt.Errorf("configuring the log: %w", err)
	}
	return obs.NewLogger(os.Stderr, logging), nil
}

// besideMetrics serves a process's metrics at their own address, if it has one.
func (c Config) besideMetrics(ctx context.Context, address string, f *front) ([]actor, error) {
	if address == "" {
		return nil, nil
	}
	l, err := openListener(ctx, address,
		"metrics_listen (FOREWARM_METRICS_LISTEN of a worker, FOREWARM_SERVER_METRICS_LISTEN of a server)")
	if err != nil {
		return nil, err
	}
	return []actor{serveMetrics(l, f, c.logger)}, nil
}

func runWorker(ctx context.Context, cfg Config, version string, f *front) error {
	a, err := newApp(ctx, cfg, "live")
	if err != nil {
		return unlessTold(ctx, err)
	}
	a.version = version
	return errors.Join(a.runWorker(ctx, func(note func() string) { f.setHandler(a.metricsHandler(note)) }),
		a.store.Close())
}

// runWorker runs a worker; up is called when it begins, with what tells what it does
// without.
func (a *app) runWorker(ctx context.Context, up func(note func() string)) error {
	if err := a.awaitSchema(ctx); err != nil {
		return unlessTold(ctx, err)
	}
	q, err := a.openQueue(ctx)
	if err != nil {
		return unlessTold(ctx, err)
	}
	w, err := a.newWorker(q, "")
	if err != nil {
		return errors.Join(err, q.Close())
	}
	up(q.OutageText)
	defer a.tellEnd(ctx)()
	a.log.InfoContext(ctx, "worker is up", "ledger", a.cfg.maskedText())
	err = runGroup(ctx, w.Run, followScheduling(a), a.cycles.run)
	return errors.Join(err, a.cycles.finish(ctx), q.Close())
}

// tellEnd logs when the process is told to end, and, by what it returns, when its
// work is over.
func (a *app) tellEnd(ctx context.Context) (over func()) {
	stop := context.AfterFunc(ctx,
		func() { a.log.Info("stopping: finishing work in progress", "cause", context.Cause(ctx)) })
	return func() {
		if !stop() {
			a.log.Info("stopped")
		}
	}
}

// unlessTold is nil for what only failed because the process was told to end
// while it waited: a server that has begun nothing has nothing to answer for.
func unlessTold(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
