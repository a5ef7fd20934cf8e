package daemon

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
	"go.yaml.in/yaml/v3"

	"github.com/forewarm/forewarm/ledger"
)

// schedulingFile is the configuration file, of which what it says of scheduling holds as soon as it is changed.
type schedulingFile struct {
	path  string
	data  []byte // as it was last looked at
	cfg   Config // as it was last good
	log   *slog.Logger
	apply func(context.Context, ledger.SchedulingConfig) error
	pools func(context.Context) ([]string, error) // the names of those that are there
}

// lookAtFileEvery is how often the file is read where the system does not say that it has changed, as over a network.
const lookAtFileEvery = 30 * time.Second

// settleFile is for how long a file must be left alone before it is read: editors write in pieces.
const settleFile = 200 * time.Millisecond

// followScheduling has what the configuration file says of scheduling hold whenever it changes, until the context
// ends.
func followScheduling(a *app) actor {
	return func(ctx context.Context) error {
		if a.cfg.file.path == "" {
			<-ctx.Done()
			return nil
		}
		f := schedulingFile{path: a.cfg.file.path, data: a.cfg.file.data, cfg: a.cfg, log: a.log,
			apply: a.ledger.ChangeScheduling,
			pools: func(ctx context.Context) ([]string, error) { return poolNames(ctx, a.store) }}
		if cfg, err := loadConfig(f.path); err == nil && bytes.Equal(cfg.file.data, f.data) {
			f.cfg = cfg // as it is before flags are laid over it
		}
		f.run(ctx)
		return nil
	}
}

func (f *schedulingFile) run(ctx context.Context) {
	changes, stop := watchFolder(filepath.Dir(f.path))
	defer stop()
	wait := time.NewTimer(lookAtFileEvery)
	defer wait.Stop()
	f.warnOfPools(ctx)
	for {
		select {
		case <-ctx.Done():
			return
		case _, open := <-changes:
			if !open {
				changes = nil
			}
			wait.Reset(settleFile)
		case <-wait.C:
			if err := f.step(ctx); err != nil && ctx.Err() == nil {
				f.log.ErrorContext(ctx, "the changed configuration does not hold; what held before goes on", "error", err)
			}
			wait.Reset(lookAtFileEvery)
		}
	}
}

// watchFolder returns a channel of hints that something has changed in a folder: of a file alone they would end when
// it is replaced. Where the system cannot watch, the channel is nil.
func watchFolder(folder string) (<-chan fsnotify.Event, func()) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, func() {}
	}
	_ = w.Add(folder)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range w.Errors { // a full queue is a lost hint
		}
	}()
	return w.Events, func() {
		_ = w.Close()
		<-done
	}
}

// step reads the file if it is another one by now. What is wrong with it is returned once.
func (f *schedulingFile) step(ctx context.Context) error {
	data, err := os.ReadFile(f.path)
	if err != nil {
		return fmt.Errorf("reading the configuration: %w", err)
	}
	if bytes.Equal(data, f.data) {
		return nil
	}
	cfg, err := loadConfig(f.path)
	if err != nil {
		f.data = data
		return err
	}
	changed := !reflect.DeepEqual(cfg.Scheduling, f.cfg.Scheduling)
	if changed {
		if err := f.apply(ctx, cfg.Scheduling.config()); err != nil {
			return fmt.Errorf("changing how jobs are scheduled: %w", err) // and tried again at the next look
		}
		f.log.InfoContext(ctx, "scheduling has changed, as the configuration says", "path", f.path)
		if lost := lostPriorities(f.cfg.Scheduling, cfg.Scheduling); len(lost) > 0 {
			f.log.WarnContext(ctx, "jobs whose priority is not configured any more count as others that name none",
				"priorities", lost, "count_as", cfg.Scheduling.priorities().CountsAs(""))
		}
	}
	if !reflect.DeepEqual(restOf(cfg), restOf(f.cfg)) {
		f.log.WarnContext(ctx, "the configuration has changed beyond scheduling: that holds from the next start",
			"path", f.path)
	}
	if f.data, f.cfg = cfg.file.data, cfg; changed {
		f.warnOfPools(ctx)
	}
	return nil
}

// warnOfPools warns of rules for pools that are not there, which would otherwise look as if they held.
func (f *schedulingFile) warnOfPools(ctx context.Context) {
	if len(f.cfg.Scheduling.Pools) == 0 {
		return
	}
	there, err := f.pools(ctx)
	if err != nil {
		f.log.WarnContext(ctx, "whether the pools of scheduling.pools are there could not be read", "error", err)
		return
	}
	for _, doubt := range f.cfg.Scheduling.doubtPools(there) {
		f.log.WarnContext(ctx, doubt, "path", f.path)
	}
}

// rest is all of a configuration that holds from a start, as what it means: not where in the file it is said.
type rest struct {
	Config
	provisioners []any // what is said to each
}

func restOf(c Config) rest {
	c.Scheduling, c.file, c.origins = Scheduling{}, Config{}.file, nil
	c.Provisioners, c.Pools = slices.Clone(c.Provisioners), slices.Clone(c.Pools)
	slices.SortStableFunc(c.Provisioners, func(a, b Provisioner) int { return cmp.Compare(a.Kind, b.Kind) })
	slices.SortStableFunc(c.Pools, func(a, b Pool) int { return cmp.Compare(a.Name, b.Name) })
	out := rest{Config: c, provisioners: make([]any, len(c.Provisioners))}
	for i := range c.Provisioners {
		node := c.Provisioners[i].Config
		if err := node.Decode(&out.provisioners[i]); err != nil { // then what is written counts
			out.provisioners[i] = node
		}
		c.Provisioners[i].Config = yaml.Node{}
	}
	return out
}
