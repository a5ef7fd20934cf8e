// Command streams measures what open event streams cost: how many single reservations
// a second are durable while many clients follow the journal, beside nobody. See
// bench/README.md.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/forewarm/forewarm/bench/rig"
)

var (
	streams = flag.Int("streams", 1000, "open streams")
	follow  = flag.String("follow", "subject", "what each stream follows: subject, the events of one reservation; all, "+
		"everything, which is sent to each of them")
)

func main() { rig.Main("64", runBenchmark) }

func runBenchmark(ctx context.Context, out io.Writer, o rig.Options) (err error) {
	i, err := rig.Install(ctx, o.Postgres, 5*time.Minute)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, i.Drop(ctx)) }()
	p, err := rig.Start(ctx, rig.Ours, i, o.CPUProfile)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(p.Stop(), err) }()
	for _, n := range o.Connections {
		quiet, followed := rig.Series{}, rig.Series{}
		for run := range o.Count {
			with := []bool{false, true, true, false} // whatever slows with time, slows both
			if run%2 == 1 {
				with = []bool{true, false, false, true}
			}
			for _, open := range with {
				rate, err := measureOnce(ctx, out, o, i, p, n, open)
				if err != nil {
					return fmt.Errorf("run %d: %w", run+1, err)
				}
				if open {
					followed = append(followed, rate)
				} else {
					quiet = append(quiet, rate)
				}
			}
		}
		writeReport(out, n, quiet, followed)
	}
	return nil
}

// measureOnce books, with the streams open or without, and counts what was acknowledged.
func measureOnce(ctx context.Context, out io.Writer, o rig.Options, i *rig.Installation, p *rig.Process, n int,
	open bool) (rate float64, err error) {
	var f followers
	if open {
		if err := f.open(ctx, i, p); err != nil {
			return 0, errors.Join(err, f.close())
		}
	}
	r, ids, err := rig.BookInTurn(ctx, o, n, rig.Fleet{Servers: []*rig.Process{p}}, i.Key.Reveal(), rig.PoolName)
	if err != nil {
		return 0, errors.Join(err, f.close())
	}
	fmt.Fprintf(out, "%4d streams, %2d connections: %6.0f/s  p50 %.2f ms  p99 %.2f ms  (%s), %d events sent\n",
		len(f.all), n, r.PerSecond(), rig.Quantile(r.Latencies(), 0.5), rig.Quantile(r.Latencies(), 0.99), r.CPUShare,
		f.got.Load())
	if err := f.close(); err != nil {
		return 0, err
	}
	return r.PerSecond(), i.Verify(ctx, ids, rig.ReservationRows, rig.ReservationEvents)
}

func writeReport(out io.Writer, n int, quiet, followed rig.Series) {
	loss := make(rig.Series, len(quiet))
	for at, ratio := range followed.Over(quiet) {
		loss[at] = 100 * (1 - ratio)
	}
	quiet.Print(out, fmt.Sprintf("streams_0_%d_per_s", n), "1/s")
	followed.Print(out, fmt.Sprintf("streams_%d_%d_per_s", *streams, n), "1/s")
	name := "streams_cost"
	if n != 64 {
		name += fmt.Sprintf("_%d", n)
	}
	loss.Print(out, name, "%")
}

// followers are the clients that follow.
type followers struct {
	all []*rig.Stream
	got atomic.Int64
	end chan error
}

// open has each client follow, from the end of the journal on. It returns when each was
// sent something, an event or that the stream is there.
func (f *followers) open(ctx context.Context, i *rig.Installation, p *rig.Process) error {
	f.end = make(chan error, *streams)
	after, subject, err := i.NewestEvent(ctx)
	if err != nil {
		return err
	}
	path := fmt.Sprintf("/v1/events/stream?after=%d", after)
	if *follow == "subject" {
		path += "&subject=" + subject
	}
	for range *streams {
		s, err := rig.OpenStream(ctx, p.URL+path, i.Key.Reveal())
		if err != nil {
			return err
		}
		f.all = append(f.all, s)
		go func() { f.end <- f.read(s) }()
	}
	return nil
}

// read takes what comes, as a client does that does nothing with it.
func (f *followers) read(s *rig.Stream) error {
	lines := bufio.NewScanner(s.Body)
	for lines.Scan() {
		if len(lines.Bytes()) > 3 && string(lines.Bytes()[:3]) == "id:" {
			f.got.Add(1)
		}
	}
	if !s.Closed() {
		return errors.Join(errors.New("a stream ended"), lines.Err())
	}
	return nil
}

func (f *followers) close() error {
	var errs []error
	for _, s := range f.all {
		s.Close()
	}
	for range f.all {
		errs = append(errs, <-f.end)
	}
	return errors.Join(errs...)
}
