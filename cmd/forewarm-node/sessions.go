package main

import (
	"cmp"
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"

	"github.com/forewarm/forewarm/internal/httpx"
	"github.com/forewarm/forewarm/node/attach"
	"github.com/forewarm/forewarm/node/burnin"
	"github.com/forewarm/forewarm/node/hold"
	"github.com/forewarm/forewarm/node/supervise"
	"github.com/forewarm/forewarm/node/work"
)

// openHolds opens what runs here for holders of allocations; nil where nothing is to, and why.
func (c config) openHolds(now steady, bootID string, prober burnin.Prober, log *slog.Logger) (
	holds *hold.Keeper, none string, err error) {
	if !c.Sessions {
		return nil, "its daemon has sessions: false", nil
	}
	settings := c.settings(bootID)
	holds, err = hold.NewKeeper(hold.Config{Dir: cmp.Or(c.HoldDir, filepath.Clean(c.StateDir)+"-holds"),
		Book: filepath.Join(c.StateDir, "holds.json"), Clock: now, BootID: bootID,
		Booted: now.Booted, Log: log,
		Launcher: launcher, Bounds: c.bounds(), Containers: c.containers(), Cleaner: c.cleaner(prober, settings),
		Metadata: c.Metadata == allowMetadata})
	if err != nil {
		return nil, "", err
	}
	if holds.Isolation() == hold.EnvironmentOnly && !c.SharedUser {
		none = "its daemon cannot give holders' work a user of its own (it is not root, or in a container without the " +
			"right), and shared_user is not set"
		log.Warn("no sessions and jobs are taken: " + none)
		return nil, none, nil
	}
	if settings != nil {
		if err := settings.Remember(context.Background(), holds.Taken()); err != nil {
			log.Info("how GPUs are set is not known: it is read when a holder has left", "error", err)
		}
	}
	if why := holds.Unbounded(); why != "" {
		log.Warn("memory and processors of holders' work are not bounded", "why", why)
	}
	return holds, "", nil
}

// openSupervisors finds the commands of sessions that earlier daemons have begun.
func (c config) openSupervisors() (all *supervise.Supervisors, earlier []*supervise.Watch, err error) {
	all, err = supervise.Open(filepath.Join(c.StateDir, "sessions"), append(slices.Clone(launcher[:1]), superviseArgument))
	if err == nil {
		earlier, err = all.Earlier()
	}
	return all, earlier, err
}

// serveSessions keeps the daemon in reach of the control plane, so that sessions can be
// opened, until the context ends or stop is called, which returns once nothing is carried any more.
// Changed is called when there is more to tell of holds.
func serveSessions(ctx context.Context, cfg attach.Config, changed func()) (stop func(), err error) {
	cfg.Runner, cfg.Random = work.Default, newJitter()
	cfg.HTTP = httpx.NewClient(httpx.Config{Timeout: -1, MaxBody: -1, UserAgent: "forewarm-node/" + versionText(),
		Transport: attach.NewTransport()})
	at, err := attach.New(cfg)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	all.Go(func() { at.Run(ctx) })
	all.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-cfg.Holds.Changed():
				changed()
			}
		}
	})
	return func() {
		cancel()
		all.Wait()
	}, nil
}

// ring rings a bell, unless it rings already.
func ring(bell chan<- struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}
