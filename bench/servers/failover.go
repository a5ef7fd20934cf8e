package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"

	"github.com/forewarm/forewarm/bench/rig"
)

// failoverConnections is how many clients wait while the server that decides goes away.
const failoverConnections = 16

// faults are how it goes away, by the name of the figure.
var faults = []struct {
	name   string
	signal syscall.Signal
}{{"failover_none_ms", 0}, {"failover_kill_ms", syscall.SIGKILL}, {"failover_pause_ms", syscall.SIGSTOP}}

// failovers is the slowest request of each run, by the name of the figure.
type failovers map[string]rig.Series

// measureFailovers has the first of three servers go away in the middle of bookings at
// the other two. What it measures is their slowest request.
func measureFailovers(ctx context.Context, out io.Writer, o rig.Options, all failovers) error {
	for _, f := range faults {
		slowest, err := measureFailover(ctx, o, f.signal)
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		all[f.name] = append(all[f.name], float64(slowest.Microseconds())/1000)
		fmt.Fprintf(out, "%-17s slowest request %v\n", f.name, slowest.Round(time.Millisecond))
	}
	return nil
}

func measureFailover(ctx context.Context, o rig.Options, signal syscall.Signal) (slowest time.Duration, err error) {
	i, err := rig.Install(ctx, o.Postgres, 5*time.Minute)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, i.Drop(ctx)) }()
	fleet, stop, err := startFleet(ctx, i, setting{servers: 3, pools: 1}, "")
	if err != nil {
		return 0, err
	}
	first := fleet.Servers[0]
	defer func() { err = errors.Join(first.End(signal), stop(), err) }()
	rest := rig.Fleet{Servers: fleet.Servers[1:]}
	failed := make(chan error, 1)
	time.AfterFunc(o.WarmUp+o.Duration/2, func() { failed <- first.Signal(signal) })
	r, ids, err := rig.BookInTurn(ctx, o, failoverConnections, rest, i.Key.Reveal(), rig.PoolName)
	if err = errors.Join(err, <-failed); err != nil {
		return 0, err
	}
	for _, a := range r.All() { // it may be answered after the measured time
		slowest = max(slowest, a.Took)
	}
	return slowest, i.Verify(ctx, ids, rig.ReservationRows, rig.ReservationEvents)
}

// writeReport prints the figures in the order of the faults.
func (all failovers) writeReport(out io.Writer) {
	for _, f := range faults {
		all[f.name].Print(out, f.name, "ms")
	}
}
