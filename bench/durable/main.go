// Command durable measures how many single reservations a second are durable,
// on PostgreSQL and on a SQLite file, compared with a handler that only decodes the
// request, and with one that commits each request on its own. See bench/README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/forewarm/forewarm/bench/rig"
)

// chosen is what is measured, one after the other in each run.
var chosen = flag.String("kinds", "ours,ceiling,unbatched,sqlite",
	"what is measured, with commas; a profile is of the first")

func main() { rig.Main("1,16,64", runBenchmark) }

var names = map[rig.Kind]string{rig.Ours: "durable", rig.Ceiling: "ceiling", rig.Unbatched: "unbatched",
	rig.Embedded: "durable_sqlite"}

// chosenKinds reads the flag.
func chosenKinds() ([]rig.Kind, error) {
	var kinds []rig.Kind
	for field := range strings.SplitSeq(*chosen, ",") {
		if names[rig.Kind(field)] == "" {
			return nil, fmt.Errorf("-kinds: nothing measures %q", field)
		}
		kinds = append(kinds, rig.Kind(field))
	}
	return kinds, nil
}

// measured is requests per second by kind and number of connections.
type measured map[rig.Kind]map[int]rig.Series

func runBenchmark(ctx context.Context, out io.Writer, o rig.Options) error {
	kinds, err := chosenKinds()
	if err != nil {
		return err
	}
	m := measured{}
	for _, k := range kinds {
		m[k] = map[int]rig.Series{}
	}
	for i := range o.Count {
		profile := ""
		if i == o.Count-1 {
			profile = o.CPUProfile
		}
		if err := measureOnce(ctx, out, o, kinds, profile, m); err != nil {
			return fmt.Errorf("run %d: %w", i+1, err)
		}
	}
	writeReport(out, o, kinds, m)
	return nil
}

// measureOnce measures every kind at every number of connections, one after the other,
// on databases of their own.
func measureOnce(ctx context.Context, out io.Writer, o rig.Options, kinds []rig.Kind, profile string,
	m measured) (err error) {
	server, file, err := install(ctx, o, kinds)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Drop(ctx), dropFile(ctx, file)) }()
	var processes []*rig.Process
	defer func() { err = errors.Join(rig.StopAll(processes), err) }()
	on := map[rig.Kind]*rig.Installation{}
	for at, k := range kinds {
		path := ""
		if at == 0 {
			path = profile
		}
		on[k] = server
		if k == rig.Embedded {
			on[k] = file
		}
		p, err := rig.Start(ctx, k, on[k], path)
		if err != nil {
			return err
		}
		processes = append(processes, p)
	}
	for _, n := range o.Connections {
		for _, p := range processes {
			r, err := measureServer(ctx, o, on[p.Kind], p, n)
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

// install makes an installation on the server, and one in a file if that is measured.
func install(ctx context.Context, o rig.Options, kinds []rig.Kind) (server, file *rig.Installation, err error) {
	const boot = 5 * time.Minute
	if server, err = rig.Install(ctx, o.Postgres, boot); err != nil {
		return nil, nil, err
	}
	if slices.Contains(kinds, rig.Embedded) {
		if file, err = rig.InstallFile(ctx, boot); err != nil {
			return nil, nil, errors.Join(err, server.Drop(ctx))
		}
	}
	return server, file, nil
}

func dropFile(ctx context.Context, file *rig.Installation) error {
	if file == nil {
		return nil
	}
	return file.Drop(ctx)
}

// measureServer runs the loop and counts what was acknowledged.
func measureServer(ctx context.Context, o rig.Options, i *rig.Installation, p *rig.Process, n int) (rig.Result, error) {
	r, ids, err := rig.BookInTurn(ctx, o, n, rig.Fleet{Servers: []*rig.Process{p}}, i.Key.Reveal(), rig.PoolName)
	if err != nil {
		return r, err
	}
	switch p.Kind {
	case rig.Ours, rig.Embedded:
		err = i.Verify(ctx, ids, rig.ReservationRows, rig.ReservationEvents)
	case rig.Unbatched:
		err = i.Verify(ctx, ids, rig.UnbatchedRows)
	}
	return r, err
}

func writeReport(out io.Writer, o rig.Options, kinds []rig.Kind, m measured) {
	for _, n := range o.Connections {
		for _, k := range kinds {
			m[k][n].Print(out, fmt.Sprintf("%s_%d_per_s", names[k], n), "1/s")
		}
		for _, k := range []rig.Kind{rig.Ceiling, rig.Unbatched} {
			if m[rig.Ours] != nil && m[k] != nil {
				m[rig.Ours][n].Over(m[k][n]).Print(out, fmt.Sprintf("durable_%d_of_%s", n, names[k]), "ratio")
			}
		}
	}
}
