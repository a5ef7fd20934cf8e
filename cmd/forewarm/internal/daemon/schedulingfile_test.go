package daemon

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/ledger"
)

// A changed file holds without a restart, as far as it is about scheduling, and one that is wrong changes
// nothing and is complained about once.
func TestSchedulingFollowsItsFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "forewarm.yaml")
	write := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
	write("scheduling: {order: arrival}\n")
	cfg, err := loadConfig(path)
	require.NoError(t, err)
	var said bytes.Buffer
	var applied []ledger.SchedulingConfig
	var refuse error
	f := schedulingFile{path: path, data: cfg.file.data, cfg: cfg, log: slog.New(slog.NewTextHandler(&said, nil)),
		apply: func(_ context.Context, c ledger.SchedulingConfig) error {
			if refuse == nil {
				applied = append(applied, c)
			}
			return refuse
		}, pools: func(context.Context) ([]string, error) { return []string{"p1", "spare"}, nil }}
	require.NoError(t, f.step(t.Context()))
	require.Empty(t, applied, "nothing has changed")

	write("scheduling: {order: arrival, pools: {p1: {preemption: true}}}\n")
	refuse = errors.New("the database is away")
	require.ErrorIs(t, f.step(t.Context()), refuse)
	refuse = nil
	require.NoError(t, f.step(t.Context()), "tried again")
	require.NotContains(t, said.String(), "level=WARN", "p1 is there")
	require.Len(t, applied, 1)
	require.True(t, applied[0].Of("p1").Preemption)
	require.False(t, applied[0].Of("p2").Preemption)

	write("scheduling: {order: fastest}\n")
	require.ErrorContains(t, f.step(t.Context()), "is no order of jobs")
	require.NoError(t, f.step(t.Context()), "said once")
	require.NotContains(t, said.String(), "next start")

	write("scheduling: {order: multifactor}\nlisten: 127.0.0.1:9999\n")
	require.NoError(t, f.step(t.Context()))
	require.Len(t, applied, 2)
	require.Contains(t, said.String(), "next start")
}

// Where in the file something is said changes nothing.
func TestLinesOfTheFileMayMove(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "forewarm.yaml")
	const cloud, other = "  - {kind: sim, config: {name: cloud, seed: 7}}\n",
		"  - kind: local\n    config: {name: other, max: 8}\n"
	write := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
	write("provisioners:\n" + cloud + other)
	cfg, err := loadConfig(path)
	require.NoError(t, err)
	var said bytes.Buffer
	f := schedulingFile{path: path, data: cfg.file.data, cfg: cfg, log: slog.New(slog.NewTextHandler(&said, nil)),
		apply: func(context.Context, ledger.SchedulingConfig) error { return nil },
		pools: func(context.Context) ([]string, error) { return nil, nil }}
	write("# moved\nscheduling: {order: arrival}\nprovisioners:\n" + other + cloud)
	require.NoError(t, f.step(t.Context()))
	require.NotContains(t, said.String(), "next start")
	write("# moved\nscheduling: {order: arrival}\nprovisioners:\n" + other + strings.Replace(cloud, "7", "9", 1))
	require.NoError(t, f.step(t.Context()))
	require.Contains(t, said.String(), "next start")
}

// A rule for a pool that is not there holds for nothing, and looks as if it held: each look says so, at the start too.
func TestRulesForPoolsThatAreNotThere(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "forewarm.yaml")
	write := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
	write("scheduling: {pools: {gpu-a10: {order: arrival}, main: {order: arrival}}}\n")
	cfg, err := loadConfig(path)
	require.NoError(t, err)
	var said bytes.Buffer
	f := schedulingFile{path: path, data: cfg.file.data, cfg: cfg, log: slog.New(slog.NewTextHandler(&said, nil)),
		apply: func(context.Context, ledger.SchedulingConfig) error { return nil },
		pools: func(context.Context) ([]string, error) { return []string{"gpu-a100", "main"}, nil }}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f.run(ctx)
	require.Contains(t, said.String(), "scheduling.pools.gpu-a10 changes nothing")
	require.Contains(t, said.String(), `until there is a pool \"gpu-a10\": write gpu-a100`)
	require.NotContains(t, said.String(), "pools.main")

	said.Reset()
	write("scheduling: {pools: {gpu-a100: {order: arrival}, another: {order: arrival}}}\n")
	require.NoError(t, f.step(t.Context()))
	require.Contains(t, said.String(), `until there is a pool \"another\": there are gpu-a100, main`)
	require.NotContains(t, said.String(), "pools.gpu-a100")
	require.Equal(t, []string{`scheduling.pools.main changes nothing until there is a pool "main": no pool is there yet`},
		Scheduling{Pools: map[string]SchedulingRules{"main": {}}}.doubtPools(nil))
}

// The system's hint is enough: nobody waits for the next look.
func TestSchedulingIsToldOfItsFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "forewarm.yaml")
	require.NoError(t, os.WriteFile(path, []byte("scheduling: {order: arrival}\n"), 0o600))
	cfg, err := loadConfig(path)
	require.NoError(t, err)
	applied := make(chan ledger.SchedulingConfig, 1)
	f := schedulingFile{path: path, data: cfg.file.data, cfg: cfg, log: slog.New(slog.DiscardHandler),
		apply: func(_ context.Context, c ledger.SchedulingConfig) error { applied <- c; return nil }}
	ctx, cancel := context.WithTimeout(t.Context(), lookAtFileEvery/2)
	defer cancel()
	ended := make(chan struct{})
	go func() { defer close(ended); f.run(ctx) }()
	tick := time.NewTicker(time.Second) // replaced again, in case nobody watched yet
	defer tick.Stop()
	for told := false; !told; {
		require.NoError(t, os.WriteFile(path+".new", []byte("scheduling: {order: multifactor}\n"), 0o600))
		require.NoError(t, os.Rename(path+".new", path))
		select {
		case <-applied:
			told = true
		case <-ctx.Done():
			t.Fatal("nobody was told")
		case <-tick.C:
		}
	}
	cancel()
	<-ended
}
