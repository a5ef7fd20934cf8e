// Command durable measures how many single reservations a second are durable,
// compared with a handler that only decodes the request, and with one that
// commits each request on its own. See bench/README.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/forewarm/forewarm/bench/rig"
)

func main() { rig.Main("1,16,64", runBenchmark) }

var kinds = []rig.Kind{rig.Ours, rig.Ceiling, rig.Unbatched}

// measured is requests per second by kind and number of connections.
type measured map[rig.Kind]map[int]rig.Series

func runBenchmark(ctx context.Context, out io.Writer, o rig.Options) error {
	m := measured{}
	for _, k := range kinds {
		m[k] = map[int]rig.Series{}
	}
	for i := range o.Count {
		profile := ""
		if i == o.Count-1 {
			profile = o.CPUProfile
		}
		if err := measureOnce(ctx, out, o, profile, m); err != nil {
			return fmt.Errorf("run %d: %w", i+1, err)
		}
	}
	writeReport(out, o, m)
	return nil
}

// measureOnce measures every kind at every number of connections, one after the other,
// on a database of their own.
func measureOnce(ctx context.Context, out io.Writer, o rig.Options, profile string, m measured) (err error) {
	i, err := rig.Install(ctx, o.Postgres, 5*time.Minute)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, i.Drop(ctx)) }()
	var processes []*rig.Process
	defer func() { err = errors.Join(rig.StopAll(processes), err) }()
	for _, k := range kinds {
		path := ""
		if k == rig.Ours {
			path = profile
		}
		p, err := rig.Start(ctx, k, i, path)
		if err != nil {
			return err
		}
		processes = append(processes, p)
	}
	for _, n := range o.Connections {
		for _, p := range processes {
			r, err := measureServer(ctx, o, i, p, n)
			if err != nil {
				return fmt.Errorf("%s at %d connections: %w", p.Kind, n, err)
			}
			m[p.Kind][n] = append(m[p.Kind][n], r.PerSecond())
			fmt.Fprintf(out, "%-9s %2d connections: %6.0f/s  p50 %.2f ms  p99 %.2f ms  (%s)\n", p.Kind, n,
				r.PerSecond(),
				rig.Quantile(r.Latencies(), 0.5), rig.Quantile(r.Latencies(), 0.99), r.CPUShare)
		}
	}
	return nil
}

// measureServer runs the loop and counts what was acknowledged.
func measureServer(ctx context.Context, o rig.Options, i *rig.Installation, p *rig.Process, n int) (rig.Result, error) {
	r, ids, err := rig.BookInTurn(ctx, o, n, rig.Fleet{Servers: []*rig.Process{p}}, i.Key.Reveal(), rig.PoolName)
	if err != nil {
		return r, err
	}
	switch p.Kind {
	case rig.Ours:
		err = i.Verify(ctx, ids, rig.ReservationRows, rig.ReservationEvents)
	case rig.Unbatched:
		err = i.Verify(ctx, ids, rig.UnbatchedRows)
	}
	return r, err
}

func writeReport(out io.Writer, o rig.Options, m measured) {
	names := map[rig.Kind]string{rig.Ours: "durable", rig.Ceiling: "ceiling", rig.Unbatched: "unbatched"}
	for _, n := range o.Connections {
		for _, k := range kinds {
			m[k][n].Print(out, fmt.Sprintf("%s_%d_per_s", names[k], n), "1/s")
		}
		m[rig.Ours][n].Over(m[rig.Ceiling][n]).Print(out, fmt.Sprintf("durable_%d_of_ceiling", n), "ratio")
		m[rig.Ours][n].Over(m[rig.Unbatched][n]).Print(out, fmt.Sprintf("durable_%d_of_unbatched", n), "ratio")
	}
}
