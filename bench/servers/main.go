// Command servers measures how many single reservations a second are durable when
// several servers share one pool, when workers run beside a server, and when a
// server has many pools. See bench/README.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/forewarm/forewarm/bench/rig"
)

func main() { rig.Main("8,32,64", runBenchmark) }

// live is how many reservations there are before anything is measured.
const live = 10_000

// setting is a number of processes and pools.
type setting struct {
	name                    string
	servers, workers, pools int
}

var (
	alone    = setting{name: "servers_1", servers: 1, pools: 1}
	compared = []setting{
		{name: "servers_2", servers: 2, pools: 1},
		{name: "servers_4", servers: 4, pools: 1},
		{name: "workers_2", servers: 1, workers: 2, pools: 1},
		{name: "pools_16", servers: 1, pools: 16},
	}
)

// measure is what one setting did at one number of connections, run by run.
type measure struct {
	perSecond rig.Series
	cpu       []rig.Series // of each process, in microseconds a request
	// beside is what one server did just before and just after, on average: a disk or a
	// machine that slows down within minutes is in both.
	beside rig.Series
}

// measured is by name of the setting, and number of connections.
type measured map[string]map[int]*measure

func runBenchmark(ctx context.Context, out io.Writer, o rig.Options) error {
	m, f := measured{}, failovers{}
	for i := range o.Count {
		if err := measureRun(ctx, out, o, m, i == o.Count-1); err != nil {
			return fmt.Errorf("run %d: %w", i+1, err)
		}
		if err := measureFailovers(ctx, out, o, f); err != nil {
			return fmt.Errorf("run %d: %w", i+1, err)
		}
	}
	writeReport(out, o, m)
	f.writeReport(out)
	return nil
}

// measureRun measures each setting between two times one server.
func measureRun(ctx context.Context, out io.Writer, o rig.Options, m measured, last bool) error {
	if err := measureOnce(ctx, out, o, alone, "", m); err != nil {
		return fmt.Errorf("%s: %w", alone.name, err)
	}
	for _, s := range compared {
		profile := ""
		if last && (s.servers == 2 || s.workers == 2) {
			profile = o.CPUProfile
		}
		if err := measureOnce(ctx, out, o, s, profile, m); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		if err := measureOnce(ctx, out, o, alone, "", m); err != nil {
			return fmt.Errorf("%s: %w", alone.name, err)
		}
		for _, n := range o.Connections {
			around := m[alone.name][n].perSecond
			m[s.name][n].beside = append(m[s.name][n].beside, (around[len(around)-2]+around[len(around)-1])/2)
		}
	}
	return nil
}

// measureOnce measures a setting at every number of connections, on a database of its own.
func measureOnce(ctx context.Context, out io.Writer, o rig.Options, s setting, profile string,
	m measured) (err error) {
	i, err := rig.Install(ctx, o.Postgres, 5*time.Minute)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, i.Drop(ctx)) }()
	pools, err := i.AddPools(ctx, s.pools-1)
	if err != nil {
		return err
	}
	if err := i.Fill(ctx, live, pools); err != nil {
		return err
	}
	fleet, stop, err := startFleet(ctx, i, s, profile)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(stop(), err) }()
	for _, n := range o.Connections {
		r, err := measureFleet(ctx, o, i, fleet, n, pools)
		if err != nil {
			return fmt.Errorf("%d connections: %w", n, err)
		}
		m.add(s.name, n, r)
		fmt.Fprintf(out, "%-9s %2d connections: %6.0f/s  p50 %.2f ms  p99 %.2f ms  (%s)\n", s.name, n, r.PerSecond(),
			rig.Quantile(r.Latencies(), 0.5), rig.Quantile(r.Latencies(), 0.99), r.CPUShare)
	}
	return nil
}

func startFleet(ctx context.Context, i *rig.Installation, s setting, profile string) (
	f rig.Fleet, stop func() error, err error) {
	stop = func() error { return errors.Join(rig.StopAll(f.Workers), rig.StopAll(f.Servers)) }
	for n := range s.servers {
		path := ""
		if n == s.servers-1 && s.workers == 0 { // one that forwards, if there is one
			path = profile
		}
		p, err := rig.Start(ctx, rig.Ours, i, path)
		if err != nil {
			return f, nil, errors.Join(err, stop())
		}
		f.Servers = append(f.Servers, p)
	}
	for n := range s.workers {
		path := ""
		if n == 0 && profile != "" {
			path = profile + ".worker"
		}
		p, err := rig.Start(ctx, rig.Worker, i, path)
		if err != nil {
			return f, nil, errors.Join(err, stop())
		}
		f.Workers = append(f.Workers, p)
	}
	return f, stop, nil
}

// measureFleet runs the loop and counts what was acknowledged.
func measureFleet(ctx context.Context, o rig.Options, i *rig.Installation, f rig.Fleet, n int,
	pools []string) (rig.Result, error) {
	r, ids, err := rig.BookInTurn(ctx, o, n, f, i.Key.Reveal(), pools...)
	if err != nil {
		return r, err
	}
	return r, i.Verify(ctx, ids, rig.ReservationRows, rig.ReservationEvents)
}

func (m measured) add(name string, connections int, r rig.Result) {
	if m[name] == nil {
		m[name] = map[int]*measure{}
	}
	one := m[name][connections]
	if one == nil {
		one = &measure{cpu: make([]rig.Series, len(r.CPUShare.Each))}
		m[name][connections] = one
	}
	one.perSecond = append(one.perSecond, r.PerSecond())
	for p, used := range r.CPUShare.Each {
		one.cpu[p] = append(one.cpu[p], float64(used.Microseconds())/float64(len(r.Counted)))
	}
}

func writeReport(out io.Writer, o rig.Options, m measured) {
	for _, s := range slices.Concat([]setting{alone}, compared) {
		for _, n := range o.Connections {
			one := m[s.name][n]
			one.perSecond.Print(out, fmt.Sprintf("%s_%d_per_s", s.name, n), "1/s")
			for p, cpu := range one.cpu {
				cpu.Print(out, fmt.Sprintf("%s_%d_cpu_of_process_%d", s.name, n, p+1), "us/request")
			}
		}
	}
	for _, s := range compared {
		least := make(rig.Series, o.Count)
		for _, n := range o.Connections {
			ratio := m[s.name][n].perSecond.Over(m[s.name][n].beside)
			ratio.Print(out, fmt.Sprintf("%s_of_%s_at_%d", s.name, base(s), n), "ratio")
			for i, v := range ratio {
				if least[i] == 0 || v < least[i] {
					least[i] = v
				}
			}
		}
		least.Print(out, fmt.Sprintf("%s_of_%s", s.name, base(s)), "ratio")
	}
}

// base is the number of the same thing when it is alone.
func base(s setting) string {
	if s.workers > 0 {
		return "0"
	}
	return "1"
}
