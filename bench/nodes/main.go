// Command nodes measures what the daemons of 1,250 nodes cost a server that books beside
// them, and what one daemon costs its node. See bench/README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/forewarm/forewarm/bench/rig"
)

var (
	count  = flag.Int("nodes", rig.PoolNodes, "nodes, each with a daemon and 8 GPUs")
	binary = flag.String("binary", "bin/forewarm-node", "the daemon that is measured as a process; empty: none")
)

func main() { rig.Main("64", runBenchmark) }

func runBenchmark(ctx context.Context, out io.Writer, o rig.Options) (err error) {
	i, err := rig.Install(ctx, o.Postgres, 5*time.Minute)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, i.Drop(ctx)) }()
	ids, err := i.AddNodes(ctx, *count)
	if err != nil {
		return err
	}
	p, err := rig.Start(ctx, rig.Ours, i, o.CPUProfile)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(p.Stop(), err) }()
	before, began := p.Memory(), time.Now()
	all, err := joinAll(ctx, p.URL, i.Key.Reveal(), ids)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d daemons joined in %.1f s\n", len(all), time.Since(began).Seconds())
	if err := measureAlone(ctx, out, o, p, all, before); err != nil {
		return err
	}
	if err := measureBookings(ctx, out, o, i, p, all); err != nil {
		return err
	}
	if err := measureReconnect(ctx, out, i, &p, all); err != nil || *binary == "" {
		return err
	}
	return errors.Join(measureDaemon(ctx, out, p.URL, all[0]), measureSessions(ctx, out, p.URL, all[0].operator))
}

// measureAlone counts heartbeats, and what they cost the server.
func measureAlone(ctx context.Context, out io.Writer, o rig.Options, p *rig.Process, all []*daemon,
	before int64) error {
	b := startBeating(ctx, all)
	if err := sleep(ctx, beatEvery); err != nil { // each has reported once
		return errors.Join(err, b.stop())
	}
	from, used, beats := time.Now(), p.Time(), b.sent.Load()
	if err := sleep(ctx, max(o.Duration, 2*beatEvery)); err != nil {
		return errors.Join(err, b.stop())
	}
	took := time.Since(from).Seconds()
	rig.Series{float64(b.sent.Load()-beats) / took}.Print(out, "nodes_heartbeats_per_s", "1/s")
	rig.Series{100 * (p.Time() - used).Seconds() / took}.Print(out, "nodes_server_cpu_percent", "%")
	rig.Series{float64(p.Memory()-before) / 1024 / float64(len(all))}.Print(out, "nodes_server_kib_each", "KiB")
	return b.stop()
}

// measureBookings books beside the daemons and without them, in turn.
func measureBookings(ctx context.Context, out io.Writer, o rig.Options, i *rig.Installation, p *rig.Process,
	all []*daemon) (err error) {
	var b *beating
	defer func() { err = errors.Join(err, b.stop()) }()
	for _, n := range o.Connections {
		quiet, beside := rig.Series{}, rig.Series{}
		for run := range o.Count {
			for _, with := range [][]bool{{false, true, true, false}, {true, false, false, true}}[run%2] {
				if b, err = b.turn(ctx, with, all); err != nil {
					return err
				}
				r, ids, err := rig.BookInTurn(ctx, o, n, rig.Fleet{Servers: []*rig.Process{p}}, i.Key.Reveal(), rig.PoolName)
				if err != nil {
					return err
				}
				if err := i.Verify(ctx, ids, rig.ReservationRows, rig.ReservationEvents); err != nil {
					return err
				}
				if with {
					beside = append(beside, r.PerSecond())
				} else {
					quiet = append(quiet, r.PerSecond())
				}
			}
		}
		quiet.Print(out, fmt.Sprintf("nodes_0_%d_per_s", n), "1/s")
		beside.Print(out, fmt.Sprintf("nodes_%d_%d_per_s", len(all), n), "1/s")
		beside.Over(quiet).Print(out, "nodes_booking_share", "")
	}
	return nil
}
