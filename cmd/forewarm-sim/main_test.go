package main

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/test/sim"
)

func TestFlagsAreChecked(t *testing.T) {
	t.Parallel()
	good := flags{days: 14, policies: []string{reactive, forewarm},
		opt: sim.Options{Boot: 5 * time.Minute, PerNode: 1, WaitWorth: 32, KeepAlive: time.Minute}}
	require.NoError(t, good.validate())
	for flag, change := range map[string]func(*flags){
		"--days":          func(f *flags) { f.days = math.NaN() },
		"--boot":          func(f *flags) { f.opt.Boot = time.Millisecond },
		"--gpus-per-node": func(f *flags) { f.opt.PerNode = -1 },
		"--wait-worth":    func(f *flags) { f.opt.WaitWorth = math.NaN() },
		"--keep-alive":    func(f *flags) { f.opt.KeepAlive = time.Second },
		"--policy":        func(f *flags) { f.policies = []string{forewarm, "hope"} },
	} {
		wrong := good
		change(&wrong)
		require.ErrorContains(t, wrong.validate(), flag)
	}
}

func TestEachRunStandsBesideItsBenchmark(t *testing.T) {
	t.Parallel()
	f := flags{policies: []string{reactive, keepAlive, forewarm}, opt: sim.Options{KeepAlive: time.Minute}}
	var names []string
	for _, r := range f.listRuns() {
		names = append(names, figureName(r.name))
		require.Equal(t, r.name == forewarm || r.name == forewarm+pure, r.opt.Agent)
		require.Equal(t, r.name == keepAlive || r.name == keepAlive+pure, r.opt.KeepAlive > 0)
	}
	require.Equal(t, []string{"reactive", "reactive_pure", "keep_alive", "keep_alive_pure", "forewarm",
		"forewarm_pure"}, names)
}
