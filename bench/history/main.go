// Command history measures what a long past costs: how many single reservations a
// second are durable in a database with the rows of a year, beside one that is new.
// See bench/README.md.
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

// events is how long the past is.
var events = flag.Int("events", 10_000_000, "events in the database with a past")

func main() { rig.Main("64", runBenchmark) }

// side is one of the two databases, with its server.
type side struct {
	name       string
	i          *rig.Installation
	fleet      rig.Fleet
	perSec     map[int]rig.Series
	cpu        map[int]rig.Series // of server and PostgreSQL, in microseconds a booking
	postmaster int                // PostgreSQL's process
}

func runBenchmark(ctx context.Context, out io.Writer, o rig.Options) (err error) {
	var fresh, old *side
	for _, s := range []struct {
		name    string
		to      **side
		events  int
		profile string
	}{{"new", &fresh, 0, ""}, {"old", &old, *events, o.CPUProfile}} {
		if *s.to, err = startSide(ctx, out, o, s.name, s.events, s.profile); err != nil {
			return err
		}
		defer func() { err = errors.Join((*s.to).stop(ctx), err) }()
	}
	for _, n := range o.Connections {
		for run := range o.Count {
			order := []*side{fresh, old, old, fresh} // whatever grows or slows, does it to both
			if run%2 == 1 {
				order = []*side{old, fresh, fresh, old}
			}
			for _, s := range order {
				if err := s.measure(ctx, out, o, n); err != nil {
					return fmt.Errorf("%s, run %d: %w", s.name, run+1, err)
				}
			}
		}
		writeReport(out, n, fresh, old)
	}
	return nil
}

func startSide(ctx context.Context, out io.Writer, o rig.Options, name string, events int, profile string) (
	*side, error) {
	i, err := rig.Install(ctx, o.Postgres, 5*time.Minute)
	if err != nil {
		return nil, err
	}
	s := &side{name: name, i: i, perSec: map[int]rig.Series{}, cpu: map[int]rig.Series{}}
	began := time.Now()
	if err := i.AddHistory(ctx, rig.History{Bookings: events / rig.EventsOfOne, Events: true}); err != nil {
		return nil, errors.Join(err, i.Drop(ctx))
	}
	if events > 0 {
		size, err := i.Size(ctx)
		if err != nil {
			return nil, errors.Join(err, i.Drop(ctx))
		}
		fmt.Fprintf(out, "%s: %d events and what belongs to them, %s, written in %s\n", name, events, size,
			time.Since(began).Round(time.Second))
	}
	if s.postmaster, err = i.Postmaster(ctx); err != nil {
		return nil, errors.Join(err, i.Drop(ctx))
	}
	p, err := rig.Start(ctx, rig.Ours, i, profile)
	if err != nil {
		return nil, errors.Join(err, i.Drop(ctx))
	}
	s.fleet.Servers = append(s.fleet.Servers, p)
	return s, nil
}

func (s *side) stop(ctx context.Context) error {
	return errors.Join(rig.StopAll(s.fleet.Servers), s.i.Drop(ctx))
}

// cpuTime is what server and PostgreSQL have used.
func (s *side) cpuTime() time.Duration {
	return rig.PostgresTime(s.postmaster) + s.fleet.Servers[0].Time()
}

// measure runs the loop and counts what was acknowledged.
func (s *side) measure(ctx context.Context, out io.Writer, o rig.Options, n int) error {
	before := s.cpuTime()
	r, ids, err := rig.BookInTurn(ctx, o, n, s.fleet, s.i.Key.Reveal(), rig.PoolName)
	if err != nil {
		return err
	}
	cpu := float64((s.cpuTime() - before).Microseconds()) / float64(len(ids))
	s.perSec[n], s.cpu[n] = append(s.perSec[n], r.PerSecond()), append(s.cpu[n], cpu)
	fmt.Fprintf(out, "%-3s %2d connections: %6.0f/s  p50 %.2f ms  p99 %.2f ms  %.0f us  (%s)\n", s.name, n, r.PerSecond(),
		rig.Quantile(r.Latencies(), 0.5), rig.Quantile(r.Latencies(), 0.99), cpu, r.CPUShare)
	return s.i.Verify(ctx, ids, rig.ReservationRows, rig.ReservationEvents)
}

// writeReport compares the two run by run: the time of a booking is the inverse of the rate.
func writeReport(out io.Writer, n int, fresh, old *side) {
	fresh.perSec[n].Print(out, fmt.Sprintf("submit_new_%d_per_s", n), "1/s")
	old.perSec[n].Print(out, fmt.Sprintf("submit_old_%d_per_s", n), "1/s")
	old.cpu[n].Over(fresh.cpu[n]).Print(out, fmt.Sprintf("submit_growth_history_cpu_%d", n), "ratio")
	name := "submit_growth_history"
	if n != 64 {
		name += fmt.Sprintf("_%d", n)
	}
	fresh.perSec[n].Over(old.perSec[n]).Print(out, name, "ratio")
}
