package main

import (
	"io"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/test/sim"
)

func TestFlagsAreChecked(t *testing.T) {
	t.Parallel()
	good := flags{trace: "trace.csv", days: 14, policies: []string{reactive, forewarm},
		opt: sim.Options{Boot: 5 * time.Minute, PerNode: 1, WaitWorth: 32, KeepAlive: time.Minute}}
	require.NoError(t, good.validate())
	for flag, change := range map[string]func(*flags){
		"--trace":         func(f *flags) { f.trace = "" },
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

// A wrong command line ends with the code that it has in every program of ours, and what
// was found wrong in doing what it says with another.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	for says, c := range map[string]struct {
		args []string
		code int
	}{
		"--trace FILE is missing":   {[]string{"replay"}, 2},
		"the trace is --trace FILE": {[]string{"replay", "trace.csv"}, 2},
		"unknown flag":              {[]string{"replay", "--tracer", "x"}, 2},
		"unknown command":           {[]string{"play"}, 2},
		"--policy must be some of":  {[]string{"replay", "--trace", "x", "--policy", "hope"}, 2},
		"no such file":              {[]string{"replay", "--trace", "/nowhere/trace.csv"}, 1},
	} {
		root := newRoot()
		root.SetArgs(c.args)
		root.SetErr(io.Discard)
		err := root.Execute()
		require.ErrorContains(t, err, says)
		require.Equal(t, c.code, exitCode(err), says)
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
