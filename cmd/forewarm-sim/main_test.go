package main

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/sim"
)

func TestFlagsAreChecked(t *testing.T) {
	t.Parallel()
	good := flags{days: 14, opt: sim.Options{Boot: 5 * time.Minute, PerNode: 1, WaitWorth: 32}}
	require.NoError(t, good.check())
	for flag, change := range map[string]func(*flags){
		"--days":          func(f *flags) { f.days = math.NaN() },
		"--boot":          func(f *flags) { f.opt.Boot = time.Millisecond },
		"--gpus-per-node": func(f *flags) { f.opt.PerNode = -1 },
		"--wait-worth":    func(f *flags) { f.opt.WaitWorth = math.NaN() },
		"--keep-alive":    func(f *flags) { f.opt.KeepAlive = -time.Second },
	} {
		wrong := good
		change(&wrong)
		require.ErrorContains(t, wrong.check(), flag)
	}
}
